"""Groups of annotators who err together more than the others do.

A family of language models, a shared office, or one person with several accounts: the errors of
their members are correlated with each other, whatever the correlation across the crowd is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.label_pairs import LabelPairs
from annotrace.labels.table import LabelTable

Array = NDArray[np.float64]

# Above it, a pair of annotators rarely shares enough items, and the matrix of pairs gets large.
MAX_ANNOTATORS = 200
# How far the correlation within a group must exceed that of all pairs, and with what significance.
MIN_EXCESS = 0.15
MIN_Z = 4.0
# Standard deviation of the correlations of pairs, a priori.
SPREAD = 0.2


def effective_votes(correlation: Any, n_votes: Any) -> Any:
    """Return how many independent votes n votes count for: n / (1 + (n - 1) correlation).

    Parameters
    ----------
    correlation, n_votes : float or ndarray
        Negative correlations count as zero.

    Examples
    --------
    >>> float(effective_votes(0.25, 9))
    3.0
    """
    return n_votes / (1 + np.maximum(n_votes - 1, 0) * np.maximum(correlation, 0))


@dataclass(frozen=True)
class ErrorGroup:
    """Annotators who err together.

    Attributes
    ----------
    annotators : tuple of int
    correlation : float
        Of the errors of two of them.
    """

    annotators: tuple[int, ...]
    correlation: float

    @property
    def effective_votes(self) -> float:
        """How many independent votes they count for if all label an item."""
        return float(effective_votes(self.correlation, len(self.annotators)))


class _PairSums(NamedTuple):
    """Sums over the labels of every two annotators, each (n_annotators, n_annotators)."""

    product: Array
    scale: Array
    variance: Array


def find_groups(
    table: LabelTable, pairs: LabelPairs, product: Array, scale: Array
) -> tuple[ErrorGroup, ...]:
    """Cluster annotators by the correlation of their errors (average linkage).

    Parameters
    ----------
    table : LabelTable
        If it has more than 200 annotators, no groups are searched for.
    pairs : LabelPairs
    product, scale : ndarray of shape (n_pairs,)
        Covariance of the two errors as observed, and the product of their standard deviations.
    """
    if not 3 <= table.n_annotators <= MAX_ANNOTATORS or scale.sum() <= 1e-9:
        return ()
    sums = _sum_by_annotators(table, pairs, product, scale)
    base = float(sums.product.sum() / sums.scale.sum())
    cluster = _cluster(1 - _shrink(sums, base), 1 - base - MIN_EXCESS)
    groups = [_check(np.flatnonzero(cluster == k), sums, base) for k in np.unique(cluster)]
    found = [group for group in groups if group is not None]
    return tuple(sorted(found, key=lambda group: -group.correlation))


def _cluster(distance: Array, largest: float) -> NDArray[np.integer[Any]]:
    """Return the cluster of each annotator, by average linkage up to a distance."""
    apart = distance + np.diag(np.full(len(distance), np.inf))
    if apart.min() > largest:
        return np.arange(len(distance))
    # They take a tenth of a second to import, and most crowds have no such groups.
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(distance, checks=False), "average")
    cluster: NDArray[np.integer[Any]] = fcluster(tree, largest, "distance")
    return cluster


def _sum_by_annotators(
    table: LabelTable, pairs: LabelPairs, product: Array, scale: Array
) -> _PairSums:
    n = table.n_annotators
    cell = table.annotator[pairs.first].astype(np.int64) * n + table.annotator[pairs.second]
    # Of rare errors, a coincidence or two exceeds the variance that is expected under independence.
    variance = np.maximum(np.square(scale), np.square(product))
    one_way = [np.bincount(cell, each, n * n) for each in (product, scale, variance)]
    sums = np.array(one_way, np.float64).reshape(3, n, n)
    return _PairSums(*(sums + sums.transpose(0, 2, 1)))


def _shrink(sums: _PairSums, base: float) -> Array:
    """Shrink the correlation of each pair towards that of all pairs, by its labels."""
    scale = np.maximum(sums.scale, 1e-9)
    noise = sums.variance / np.square(scale)
    reliability = np.where(sums.scale > 1e-9, SPREAD**2 / (SPREAD**2 + noise), 0.0)
    # Sums over few labels may give more than 1.
    shrunken: Array = np.clip(base + (sums.product / scale - base) * reliability, -1, 1)
    np.fill_diagonal(shrunken, 1.0)
    return shrunken


def _check(members: NDArray[np.int64], sums: _PairSums, base: float) -> ErrorGroup | None:
    """Return a group if its correlation is significantly above that of all pairs."""
    if len(members) < 2:
        return None
    product, scale, variance = (float(each[np.ix_(members, members)].sum()) for each in sums)
    excess = product / scale - base
    z = excess * scale / np.sqrt(2 * variance)
    # Among many annotators some pairs err together by chance.
    by_chance = np.sqrt(2 * np.log(len(sums.scale) ** 2 / 2))
    if excess < MIN_EXCESS or z < MIN_Z + by_chance:
        return None
    return ErrorGroup(tuple(members.tolist()), min(product / scale, 1.0))
