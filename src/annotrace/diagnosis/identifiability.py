r"""Whether labels identify the true classes: the conditions, measured one by one.

- *Dominance*, the paper's condition: averaged over annotators, items of a class are given its name
  more often than items of any other class are (`margins`).
- *Information*: labels depend on the true class at all, and on which of two classes it is
  (`annotrace.diagnosis.prediction`).
- *Connection*: annotators label the same items or, if a classifier knows which items are similar,
  items of the same classes (`connected_groups`, `class_overlap`).
- *Distance*: no two classes are reported alike (`class_distances`).
- *Names*: each class is given its own name more often than a permutation of the names would explain
  (`best_names`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from annotrace.crowd.beta_interval import TWO_SIDED_90
from annotrace.crowd.skills import AnnotatorPosterior
from annotrace.diagnosis.metrics import best_assignment, dominance_margins
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

# Of simulated crowds (benchmarks/diagnosis.py, seeds 100 to 115).
MAX_SEPARATION = 0.6


class Estimate(NamedTuple):
    """A value with its 90 % interval; arrays of the same shape, or numbers."""

    value: Any
    low: Any
    high: Any


def margins(mean: NDArray[Any], variance: NDArray[Any]) -> tuple[Estimate, NDArray[np.int64]]:
    """Return the dominance margin of each class with its interval, and the rival of each class.

    Parameters
    ----------
    mean, variance : ndarray of shape (n_classes, n_classes)
        Of the mean confusion matrix, see `mean_confusion`.

    Returns
    -------
    margins : Estimate
        Each of shape (n_classes,).
    rivals : ndarray of int, shape (n_classes,)
        The other class that is most often given each class's name.
    """
    rivals = (mean - np.diag(np.full(len(mean), np.inf))).argmax(axis=0)
    value = dominance_margins(mean)
    bar = TWO_SIDED_90 * np.sqrt(np.diagonal(variance) + variance[rivals, np.arange(len(mean))])
    return Estimate(value, np.maximum(value - bar, -1), np.minimum(value + bar, 1)), rivals


def mean_confusion(
    annotators: AnnotatorPosterior,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and variance of the mean matrix over annotators with labels.

    Returns
    -------
    mean, variance : ndarray of shape (n_classes, n_classes)
    """
    labelled = annotators.counts.any(axis=(1, 2))
    who = np.flatnonzero(labelled if labelled.any() else ~labelled)
    variance = annotators.cell_variance(who).sum(axis=0) / len(who) ** 2
    return annotators.mean[who].mean(axis=0), variance


def connected_groups(
    table: LabelTable, is_gold: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Return the group of each annotator; no item connects one group with another.

    Parameters
    ----------
    table : LabelTable
    is_gold : ndarray of bool, shape (n_items,), optional
        Gold items, which connect all who labelled any of them.

    Returns
    -------
    ndarray of shape (n_annotators,)
        Group 0 has the most labels, and so on; annotators without labels are in no group, -1.
    """
    own, gold = np.arange(table.n_annotators), np.empty(0, np.int32)
    earliest = np.full(table.n_annotators, table.n_labels)
    for _, labels in table.blocks():
        annotator, item = table.annotator[labels], table.item[labels]
        # The first label of an item connects all others.
        own = _join(own, table.annotator[table.offsets[item]], annotator)
        if is_gold is not None:
            on_gold = annotator[is_gold[item]]
            gold = np.append(gold, on_gold[:1])[:1]
            own = _join(own, gold, on_gold)
        earliest[annotator[::-1]] = np.minimum(
            earliest[annotator[::-1]], np.arange(labels.stop - 1, labels.start - 1, -1)
        )
    np.minimum.at(earliest, own, earliest.copy())
    n_labels = np.bincount(own, table.labels_per_annotator(), minlength=table.n_annotators)
    place = np.empty(len(n_labels), np.int64)
    place[np.lexsort((earliest, -n_labels))] = np.arange(len(n_labels))
    return np.where(table.labels_per_annotator() > 0, place[own], -1)


def _join(own: NDArray[np.int64], one: Codes, other: Codes) -> NDArray[np.int64]:
    """Join the groups of pairs of annotators; a group is named after its first annotator."""
    ends = np.broadcast_arrays(own[one], own[other])
    # Each group joins an earlier one that it is paired with, until no pair is apart.
    while (apart := ends[0] != ends[1]).any():
        left, right = (end[apart] for end in ends)
        first = np.arange(len(own))
        np.minimum.at(first, np.maximum(left, right), np.minimum(left, right))
        while (first[first] != first).any():
            first = first[first]
        own, ends = first[own], (first[left], first[right])
    return own


class Overlap(NamedTuple):
    """How far annotators have labelled items of the same classes.

    Attributes
    ----------
    separation : float
        0 if all annotators have labelled the same mix of classes; 1 if some have labelled some
        classes only, and the others the rest.
    side : ndarray of bool, shape (n_classes,)
        The two sets of classes that are furthest apart.
    """

    separation: float
    side: NDArray[np.bool_]

    @property
    def is_comparable(self) -> bool:
        """Whether annotators can be compared through the classes that they have labelled."""
        return self.separation <= MAX_SEPARATION


def class_overlap(n_labelled: NDArray[Any]) -> Overlap:
    """Measure whether annotators have labelled items of the same classes.

    The second singular value of the table [annotator, true class], each side scaled by its sums, is
    the correlation between annotator and class: 1 if the table falls into two.

    Parameters
    ----------
    n_labelled : ndarray of shape (n_annotators, n_classes)
        Items of each class that each annotator labelled, estimated or by `votes_of_others`.
    """
    seen = n_labelled[n_labelled.sum(axis=1) > 0]
    if len(seen) == 0:
        return Overlap(0.0, np.zeros(n_labelled.shape[1], dtype=bool))
    scale = 1 / np.sqrt(np.maximum(seen.sum(axis=0), 1e-9))
    gram = scale[:, None] * (seen.T @ (seen / seen.sum(axis=1, keepdims=True))) * scale
    values, vectors = np.linalg.eigh(gram)
    by_chance = len(seen) / seen.sum() * (1 + np.sqrt(seen.shape[1] / len(seen))) ** 2
    excess = max(values[-2] - by_chance, 0) / max(1 - by_chance, 1e-9)
    return Overlap(float(np.sqrt(min(excess, 1))), vectors[:, -2] * scale > 0)


def votes_of_others(table: LabelTable) -> NDArray[np.float64]:
    """Count the classes of each annotator's items as others report them.

    If some annotators see some classes only and the others the rest, an estimated truth may merge
    two classes, and nothing seems separate any more; the labels of others still are.

    Parameters
    ----------
    table : LabelTable
        An item counts once for each of its annotators; items with one label do not count.

    Returns
    -------
    ndarray of shape (n_annotators, n_classes)
    """
    seen = np.zeros((table.n_annotators, table.n_classes))
    for items, labels in table.blocks():
        offsets = table.offsets[items.start : items.stop + 1] - labels.start
        n_others = np.diff(offsets) - 1
        share = np.divide(1.0, n_others, where=n_others > 0, out=np.zeros(len(n_others)))
        weight, annotator = np.repeat(share, n_others + 1), table.annotator[labels]
        shape = (len(n_others), table.n_annotators)
        labelled = csr_matrix((weight, annotator, offsets), shape=shape)
        seen += labelled.T @ table.votes(items).astype(np.float64)
        cell = annotator * np.int64(table.n_classes) + table.label[labels]
        seen -= np.bincount(cell, weight, minlength=seen.size).reshape(seen.shape)
    return np.maximum(seen, 0)


def class_distances(mean_confusion: NDArray[Any]) -> NDArray[np.float64]:
    """Return how differently every two classes are reported, shape (n_classes, n_classes).

    The total variation distance between two rows of the mean matrix: 0 if both are reported alike.
    """
    return np.array([abs(mean_confusion - row).sum(axis=1) / 2 for row in mean_confusion])


def best_names(mean_confusion: NDArray[Any]) -> NDArray[np.int64]:
    """Assign each class the name that fits best, no name twice, shape (n_classes,).

    If it is not its own, training has ended in a solution with permuted names.
    """
    return best_assignment(mean_confusion)
