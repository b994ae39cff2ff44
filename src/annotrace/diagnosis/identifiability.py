r"""Whether labels can tell the truth: the conditions, measured one by one.

- *Dominance*, the paper's condition: in the mean over annotators, items of a class are called by
  its name more often than items of any other class are (`margins`).
- *Information*: labels depend on the truth at all, and on which of two classes it is
  (`prediction`).
- *Connection*: annotators are compared on the same items, or, where a classifier knows which items
  are alike, on items of the same classes (`groups_of_annotators`, `class_overlap`).
- *Conditioning*: no two classes are reported alike by everybody (`class_distances`,
  `smallest_singular_value`).
- *Names*: each class is called by its own name more than a permutation of names would explain
  (`best_names`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from annotrace.diagnosis.metrics import dominance_margins
from annotrace.labels.table import LabelTable

TWO_SIDED_90 = 1.645
MOST_SEPARATION = 0.6
# Differences of cells that distances are worth: four seconds.
_DIFFERENCES = 1e10


class Estimate(NamedTuple):
    """A value with its 90 % interval; arrays of the same shape, or numbers."""

    value: Any
    low: Any
    high: Any


def margins(mean_draws: NDArray[Any]) -> Estimate:
    """Give the dominance margin of each class (`dominance_margins`) with its error bar.

    Parameters
    ----------
    mean_draws : ndarray of shape (n_draws, n_classes, n_classes)
        Draws of the mean matrix.

    Returns
    -------
    Estimate
        Each of shape (n_classes,).
    """
    drawn = np.stack([dominance_margins(mean) for mean in mean_draws])
    value, bar = drawn.mean(axis=0), TWO_SIDED_90 * drawn.std(axis=0)
    return Estimate(value, np.maximum(value - bar, -1), np.minimum(value + bar, 1))


def groups_of_annotators(
    table: LabelTable, known: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Give the group of each annotator, where no item connects one group with another.

    Parameters
    ----------
    table : LabelTable
    known : ndarray of bool, shape (n_items,), optional
        Items of known class, which connect all who labelled any of them.

    Returns
    -------
    ndarray of shape (n_annotators,)
        Group 0 has the most labels, and so on; annotators without labels are in no group, -1.
    """
    size = table.n_items + table.n_annotators
    item = np.arange(table.n_items)
    if known is not None and known.any():
        item[known] = known.argmax()
    ends = (item[table.item], table.n_items + table.annotator)
    graph = csr_matrix((np.ones(table.n_labels), ends), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    own = component[table.n_items :]
    n_labels = np.bincount(own, table.labels_per_annotator(), minlength=component.max() + 1)
    place = np.empty(len(n_labels), np.int64)
    place[np.argsort(-n_labels, kind="stable")] = np.arange(len(n_labels))
    return np.where(table.labels_per_annotator() > 0, place[own], -1)


class Overlap(NamedTuple):
    """How far the classes that annotators have seen hang together.

    Attributes
    ----------
    separation : float
        0 where everybody has seen the same mix of classes; 1 where some annotators have seen
        some classes only, and the others the rest.
    side : ndarray of shape (n_classes,), bool
        The two sets of classes that are furthest apart.
    """

    separation: float
    side: NDArray[np.bool_]

    @property
    def apart(self) -> bool:
        """Whether that is too far to compare annotators by the classes that they have seen."""
        return self.separation > MOST_SEPARATION


def class_overlap(seen: NDArray[Any]) -> Overlap:
    """Tell whether annotators can be compared through the classes that they have seen.

    The second singular value of labels [annotator, true class], each side scaled by its sums, is
    the correlation between annotator and class: 1 where the table falls into two.

    Parameters
    ----------
    seen : ndarray of shape (n_annotators, n_classes)
        How many items of each class everybody labelled, as estimated or as `seen_by_others`.
    """
    seen = seen[seen.sum(axis=1) > 0]
    if len(seen) == 0:
        return Overlap(0.0, np.zeros(seen.shape[1], dtype=bool))
    scale = 1 / np.sqrt(np.maximum(seen.sum(axis=0), 1e-9))
    gram = scale[:, None] * (seen.T @ (seen / seen.sum(axis=1, keepdims=True))) * scale
    values, vectors = np.linalg.eigh(gram)
    by_chance = len(seen) / seen.sum() * (1 + np.sqrt(seen.shape[1] / len(seen))) ** 2
    beyond = max(values[-2] - by_chance, 0) / max(1 - by_chance, 1e-9)
    return Overlap(float(np.sqrt(min(beyond, 1))), vectors[:, -2] * scale > 0)


def seen_by_others(table: LabelTable) -> NDArray[np.float64]:
    """Count the classes of everybody's items as others report them, (n_annotators, n_classes).

    Where some see some classes only and the others the rest, the estimated truth may make one
    class of two, and nothing is apart any more; what others say of the same items still is. A
    habit is not: others do not share it.

    Parameters
    ----------
    table : LabelTable
        An item counts once for each of its annotators; those with one label do not count.
    """
    n_others = table.labels_per_item() - 1
    share = np.divide(1.0, n_others, where=n_others > 0, out=np.zeros(table.n_items))
    given = share[table.item]
    labelled = csr_matrix(
        (given, table.annotator, table.offsets), shape=(table.n_items, table.n_annotators)
    )
    seen: NDArray[np.float64] = np.asarray(labelled.T @ table.votes().astype(np.float64))
    np.subtract.at(seen, (table.annotator, table.label), given)
    return np.maximum(seen, 0)


def class_distances(confusion: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Tell how differently labels fall for every two classes, shape (n_classes, n_classes).

    The total variation distance between two rows of a matrix, mean over annotators: 0 where all
    report both classes alike, so that labels cannot tell one from the other. Of many annotators
    with many classes, those with the most labels (ten at 1,000 classes).

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    weights : ndarray of shape (n_annotators,)
        Labels of each annotator.
    """
    most = max(int(_DIFFERENCES / confusion.shape[1] ** 3), 1)
    if len(weights) > most:
        chosen = np.sort(np.argsort(-weights, kind="stable")[:most])
        confusion, weights = confusion[chosen], weights[chosen]
    # The weighted sum of distances is the distance of weighted rows, side by side.
    apart = pdist(_side_by_side(confusion, weights), "cityblock")
    distances: NDArray[np.float64] = squareform(apart) / (2 * max(float(weights.sum()), 1e-9))
    return distances


def smallest_singular_value(confusion: NDArray[Any], weights: NDArray[Any]) -> float:
    """Give the smallest singular value of all matrices side by side, weighed by labels.

    1 for perfect annotators; near 0 some mix of classes cannot be told from another mix.
    """
    share = np.sqrt(weights / max(float(weights.sum()), 1e-9))
    stacked = _side_by_side(confusion, share)
    return float(np.sqrt(max(np.linalg.eigvalsh(stacked @ stacked.T)[0], 0)))


def _side_by_side(confusion: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Give weighted matrices in one row, shape (n_classes, n_annotators * n_classes)."""
    weighted: NDArray[Any] = (confusion * weights[:, None, None]).transpose(1, 0, 2)
    return weighted.reshape(confusion.shape[1], -1)


def best_names(mean_confusion: NDArray[Any]) -> NDArray[np.int64]:
    """Give each class the name that fits best, no name twice, shape (n_classes,).

    Where it is not its own, training has ended in a solution with names permuted.
    """
    _, names = linear_sum_assignment(mean_confusion, maximize=True)
    return np.asarray(names, dtype=np.int64)
