"""How sure to be of an item, where people make mistakes together.

The posterior of a model takes mistakes for independent: given the class of an item, what one
annotator says tells nothing of what another says. Real annotators are misled by the same items,
and a classifier that learned from them is misled with them. Nothing in the labels can show it: a
class that everybody takes for another looks like that other. So what is usual has to be assumed:

- labels of one item are worth less than as many of different items: evidence is divided by the
  *design effect* of samples that hang together, 1 + `DEPENDENCE` x labels;
- a share `SHARED` of the mistakes that several annotators make alike is made by all at once: what
  looks like class j is then truly class i. Mistakes that each makes in a way of its own, and
  guesses spread over all classes, are not counted.

Both numbers are from eleven public crowds with known truth (docs/trust.md): without them the mean
calibration error is .092, with them .056.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.counting import drawn_counts, label_scores, normalised, report_matrix
from annotrace.labels.table import LabelTable

DEPENDENCE = 0.2
SHARED = 0.3
# Mean calibration error of `confidence_` of the default aggregation: docs/trust.md.
USUAL_ERROR = 0.07
# Added to every count of a report, as `annotrace.aggregation.DawidSkene` does.
SMOOTHING = 0.01


def calibrated_confidence(
    table: LabelTable, posterior: NDArray[Any], confusion: NDArray[Any]
) -> NDArray[np.float64]:
    """Give the probability that the likeliest class of each item is right.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)

    Returns
    -------
    ndarray of shape (n_items,)
    """
    estimate = posterior.argmax(axis=1)
    true = calibrated_probabilities(table, posterior, confusion, estimate)
    likeliest: NDArray[np.float64] = true[np.arange(len(true)), estimate]
    return likeliest


def calibrated_probabilities(
    table: LabelTable,
    posterior: NDArray[Any],
    confusion: NDArray[Any],
    estimate: NDArray[np.integer[Any]],
) -> NDArray[np.float64]:
    """Give the probability of every class, shape (n_items, n_classes); as `calibrated_confidence`.

    Parameters
    ----------
    table, posterior, confusion
        As in `calibrated_confidence`.
    estimate : ndarray of int, shape (n_items,)
        The class given to each item.
    """
    n_labels = table.labels_per_item()[:, None]
    apparent = tempered(posterior, 1 / (1 + DEPENDENCE * n_labels))
    alike = mistakes_alike(confusion, table.labels_per_annotator())
    true = apparent @ class_behind(SHARED * alike, posterior.mean(axis=0)).T
    return bounded(true, posterior, estimate)


def bounded(
    true: NDArray[Any], posterior: NDArray[Any], estimate: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Keep the class given no surer than the posterior has it, and no less likely than a guess.

    Where another class would be likelier than the one given, both are level, as far as that is no
    more than the posterior has.

    Parameters
    ----------
    true, posterior : ndarray of shape (n_items, n_classes)
    estimate : ndarray of int, shape (n_items,)

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    rows = np.arange(len(true))
    most = posterior[rows, estimate]
    kept = np.where((true[rows, estimate] > most)[:, None], posterior, true)
    given = kept[rows, estimate]
    kept[rows, estimate] = 0
    others, second = kept.sum(axis=1), kept.max(axis=1)
    level = second / np.maximum(others + second, 1e-300)
    sure = np.maximum(given, np.minimum(level, np.maximum(most, 1 / true.shape[1])))
    kept *= ((1 - sure) / np.maximum(others, 1e-300))[:, None]
    kept[rows, estimate] = sure
    return kept


def counted_matrices(table: LabelTable, estimate: NDArray[Any]) -> NDArray[np.float64]:
    """Count how annotators answer where each class is given; rows sum to one.

    Parameters
    ----------
    table : LabelTable
    estimate : ndarray of int, shape (n_items,)
        The class given to each item.

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    counts = drawn_counts(table, estimate) + SMOOTHING
    matrices: NDArray[np.float64] = counts / counts.sum(axis=2, keepdims=True)
    return matrices


def counted_posterior(table: LabelTable, estimate: NDArray[Any]) -> NDArray[np.float64]:
    """Give the probability of every class where an item has but the share of its votes.

    A step of Dawid and Skene's: matrices and class shares counted from the classes given, then
    Bayes' rule. The share of votes is none: of ten people who are right seven times in ten, seven
    who agree are right with .97, not .7.

    Parameters
    ----------
    table : LabelTable
    estimate : ndarray of int, shape (n_items,)

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    labelled = table.labels_per_item() > 0
    common = np.bincount(estimate[labelled], minlength=table.n_classes) / labelled.sum()
    scores = label_scores(report_matrix(table), counted_matrices(table, estimate))
    return normalised(np.log(np.maximum(common, 1e-9)) + scores)


def half_right(posterior: NDArray[Any]) -> NDArray[np.float64]:
    """Give probabilities (n_items, n_classes) where nothing tells how often labels are right.

    A skill of which nothing is known is anything from 0 to 1, half in the mean, and mistakes may be
    any other class.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        The labels as they are.
    """
    likely = posterior.astype(np.float64)
    halves: NDArray[np.float64] = (likely + (1 - likely) / (likely.shape[1] - 1)) / 2
    return halves


def settled(probabilities: NDArray[Any], gold: NDArray[Any]) -> NDArray[Any]:
    """Give probabilities (n_items, n_classes) that are certain where the class is known.

    Parameters
    ----------
    probabilities : ndarray of shape (n_items, n_classes)
    gold : ndarray of int, shape (n_items,)
        -1 where the class is not known.
    """
    known = np.flatnonzero(gold >= 0)
    if len(known) == 0:
        return probabilities
    certain = probabilities.copy()
    certain[known] = np.eye(probabilities.shape[1])[gold[known]]
    return certain


def tempered(posterior: NDArray[Any], power: NDArray[Any]) -> NDArray[np.float64]:
    """Raise probabilities (n_items, n_classes) to a power for each item, and normalise."""
    return normalised(power * np.log(np.maximum(posterior.astype(np.float64), 1e-300)))


def mistakes_alike(confusion: NDArray[Any], n_labels: NDArray[Any]) -> NDArray[np.float64]:
    """Give the mistakes that annotators make alike, shape (n_classes, n_classes), zero diagonal.

    The geometric mean of two different annotators' chances of the same mistake, less what would be
    a guess: the least of a row's mistakes, where there are more than two classes.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    n_labels : ndarray of shape (n_annotators,)
    """
    weight = n_labels / n_labels.sum()
    alone = np.square(weight).sum()
    if alone > 1 - 1e-9:
        return np.zeros(confusion.shape[1:])
    mean = np.einsum("r,rij->ij", weight, confusion)
    own = np.einsum("r,rij->ij", np.square(weight), np.square(confusion))
    alike = np.sqrt(np.maximum(np.square(mean) - own, 0) / (1 - alone))
    diagonal = np.eye(len(mean), dtype=bool)
    if len(mean) > 2:
        alike = alike - np.where(diagonal, np.inf, alike).min(axis=1, keepdims=True)
    mistakes: NDArray[np.float64] = np.where(diagonal, 0, np.maximum(alike, 0))
    return mistakes


def class_behind(mistakes: NDArray[Any], common: NDArray[Any]) -> NDArray[np.float64]:
    """Give how often each class is behind what looks like another (Bayes' rule).

    Parameters
    ----------
    mistakes : ndarray of shape (n_classes, n_classes)
        How often all take a class for another, [true, apparent]; zero diagonal.
    common : ndarray of shape (n_classes,)
        How common classes are.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        [true, apparent], columns sum to one.
    """
    looks_like = mistakes + np.diag(1 - mistakes.sum(axis=1))
    joint = np.maximum(common, 1e-12)[:, None] * looks_like
    behind: NDArray[np.float64] = joint / joint.sum(axis=0)
    return behind
