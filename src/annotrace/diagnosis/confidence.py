"""How sure to be of an item's class, given that annotators err together.

The posterior of a model assumes independent errors: given the class of an item, the label of one
annotator says nothing about that of another. Real annotators are misled by the same items, and a
classifier that learned from them is misled with them. Nothing in the labels can show it: a class
that everybody mistakes for another looks like that other. So the usual amount has to be assumed:

- labels of one item carry less information than as many of different items: evidence is divided by
  the *design effect* of correlated samples, 1 + `DEPENDENCE` x labels;
- a share `SHARED` of the errors that several annotators have in common is made by all at once: what
  looks like class j is then truly class i. Errors that each annotator makes in a way of its own, and
  guesses spread over all classes, do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.result import CrowdResult

Array = NDArray[np.float64]

DEPENDENCE = 0.2
SHARED = 0.3
# Mean calibration error of `confidence_` of the default aggregation: docs/trust.md.
USUAL_ERROR = 0.07


def calibrated_posterior(result: CrowdResult) -> Array:
    """Return class probabilities that allow for shared errors, shape (n_items, n_classes).

    The probability of the estimated class is never above its posterior, nor below a guess. Gold
    items are certain. If nothing compares annotators, a label is as likely right as wrong. Methods
    that do not model annotators return their posterior.
    """
    posterior = independent_posterior(result)
    if result.models_annotators and result.is_comparable:
        confusion, n_labels = result.annotators.mean, result.table.labels_per_annotator()
        evidence = 1 + DEPENDENCE * result.table.labels_per_item()[:, None]
        shared = SHARED * shared_errors(confusion, n_labels)
        true = temper(posterior, 1 / evidence) @ class_given_apparent(shared, posterior.mean(0)).T
        posterior = _bounded(true, posterior, result.estimate)
    is_gold = result.gold >= 0
    posterior[is_gold] = np.eye(posterior.shape[1])[result.gold[is_gold]]
    return posterior


def independent_posterior(result: CrowdResult) -> Array:
    """Return class probabilities if annotators erred independently, shape (n_items, n_classes).

    Shares of votes are not probabilities: of ten annotators who are right seven times in ten, seven
    who agree are right with .97, not .7. For votes it is the posterior under the confusion matrices
    of the annotators.
    """
    if result.models_annotators and not result.is_comparable:
        return _half_right(result.posterior)
    if result.models_annotators and result.is_vote:
        return result.annotators.item_posterior.copy()
    return result.posterior.astype(np.float64)


def confidence(result: CrowdResult) -> Array:
    """Return the calibrated probability of each item's estimated class, shape (n_items,)."""
    probabilities: Array = np.take_along_axis(
        calibrated_posterior(result), result.estimate[:, None].astype(np.int64), axis=1
    )
    return probabilities[:, 0]


def _half_right(posterior: NDArray[Any]) -> Array:
    """An unknown skill is anything from 0 to 1, one half on average; errors are any other class."""
    likely = posterior.astype(np.float64)
    halves: Array = (likely + (1 - likely) / (likely.shape[1] - 1)) / 2
    return halves


def _bounded(true: Array, posterior: Array, estimate: NDArray[Any]) -> Array:
    """Keep the estimated class no surer than the posterior, and no less likely than a guess.

    If another class would be more likely than the estimated one, both become equal, as far as the
    posterior of the estimated class allows.
    """
    rows = np.arange(len(true))
    most = posterior[rows, estimate]
    kept = np.where((true[rows, estimate] > most)[:, None], posterior, true)
    own = kept[rows, estimate]
    kept[rows, estimate] = 0
    others, second = kept.sum(axis=1), kept.max(axis=1)
    equal = second / np.maximum(others + second, 1e-300)
    sure = np.maximum(own, np.minimum(equal, np.maximum(most, 1 / true.shape[1])))
    kept *= ((1 - sure) / np.maximum(others, 1e-300))[:, None]
    kept[rows, estimate] = sure
    return kept


def temper(posterior: NDArray[Any], power: NDArray[Any]) -> Array:
    """Raise probabilities (n_items, n_classes) to a power per item, and normalise."""
    log = power * np.log(np.maximum(posterior, 1e-300))
    tempered: Array = np.exp(log - log.max(axis=1, keepdims=True))
    return tempered / tempered.sum(axis=1, keepdims=True)


def shared_errors(confusion: NDArray[Any], n_labels: NDArray[Any]) -> Array:
    """Return the errors that annotators have in common, (n_classes, n_classes), zero diagonal.

    The geometric mean of two different annotators' probabilities of the same error, less what could
    be a guess: the least of a row's errors, if there are more than two classes.

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
    shared = np.sqrt(np.maximum(np.square(mean) - own, 0) / (1 - alone))
    diagonal = np.eye(len(mean), dtype=bool)
    if len(mean) > 2:
        shared = shared - np.where(diagonal, np.inf, shared).min(axis=1, keepdims=True)
    errors: Array = np.where(diagonal, 0, np.maximum(shared, 0))
    return errors


def class_given_apparent(errors: Array, class_shares: NDArray[Any]) -> Array:
    """Return p(true class | apparent class), [true, apparent], by Bayes' rule.

    Parameters
    ----------
    errors : ndarray of shape (n_classes, n_classes)
        How often all mistake a class for another, [true, apparent]; zero diagonal.
    class_shares : ndarray of shape (n_classes,)
    """
    likelihood = errors + np.diag(1 - errors.sum(axis=1))
    joint = np.maximum(class_shares, 1e-12)[:, None] * likelihood
    posterior: Array = joint / joint.sum(axis=0)
    return posterior
