r"""Shared errors: how far annotators err on the same items, and what their labels then count for.

Labels of an item are worth as many votes as there are labels only if annotators err independently
given the true class. With a correlation :math:`\rho` between the errors of two annotators, n labels
count as :math:`n / (1 + (n - 1) \rho)` (Kish's effective sample size): ten judges that were trained
on the same texts may count as three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.crowd.error_groups import ErrorGroup, effective_votes, find_groups
from annotrace.crowd.label_pairs import LabelPairs, pair_labels
from annotrace.labels.codes import check_truth
from annotrace.labels.table import LabelTable

__all__ = [
    "ErrorDependence",
    "ErrorGroup",
    "effective_votes",
    "known_dependence",
]

Array = NDArray[np.float64]

TWO_SIDED_90 = 1.645


@dataclass(frozen=True)
class ErrorDependence:
    """How far annotators err together.

    Attributes
    ----------
    correlation : float
        Of the errors of two annotators on one item, given its true class; the mean over pairs.
    low, high : float
        Its 90 % interval.
    n_votes : float
        Mean number of labels of an item.
    groups : tuple of ErrorGroup
        Annotators who err together more than the others do, the strongest group first.
    """

    correlation: float
    low: float
    high: float
    n_votes: float
    groups: tuple[ErrorGroup, ...] = ()

    @property
    def effective_votes(self) -> float:
        """How many independent votes the labels of an item count for."""
        return float(effective_votes(self.correlation, self.n_votes))


def known_dependence(table: LabelTable, truth: ArrayLike) -> ErrorDependence:
    """Measure the correlation of annotators' errors on items of known truth.

    The mean over pairs of annotators of the correlation of their errors within a true class, each
    pair weighted by its labels of the same items and by how much its errors vary. Without two
    labels of an item by annotators who err, the correlation is 0, with an interval up to 1.

    Parameters
    ----------
    table : LabelTable
    truth : array-like of int, shape (n_items,)
        The class of each item, -1 if unknown.

    Examples
    --------
    >>> item, annotator = np.repeat(np.arange(4), 2), np.tile([0, 1], 4)
    >>> table = LabelTable.from_codes(item, annotator, label=[0, 0, 0, 0, 1, 1, 1, 1])
    >>> known_dependence(table, [0, 0, 0, 0]).correlation
    1.0
    """
    codes = check_truth(truth, table.n_items, table.n_classes)
    known = table.replace(truth=codes).select_items(codes >= 0)
    residual, scale = _error_residuals(known)
    pairs = pair_labels(known)
    product = residual[pairs.first] * residual[pairs.second]
    return summarize_pairs(known, pairs, product, scale[pairs.first] * scale[pairs.second])


def _error_residuals(table: LabelTable) -> tuple[Array, Array]:
    """Return each label's error less its mean, and its standard deviation, both (n_labels,).

    Means are those of an annotator on items of one class: that errors are more frequent in some
    classes is a matter of confusion matrices.
    """
    assert table.truth is not None
    true = table.truth[table.item]
    wrong = (table.label != true).astype(np.float64)
    cell = table.annotator.astype(np.int64) * table.n_classes + true
    rate = np.bincount(cell, wrong) / np.maximum(np.bincount(cell), 1)
    return wrong - rate[cell], np.sqrt(rate * (1 - rate))[cell]


class _Ratio(NamedTuple):
    value: float
    error: float


def summarize_pairs(
    table: LabelTable, pairs: LabelPairs, product: Array, scale: Array
) -> ErrorDependence:
    """Return the mean correlation over pairs of labels, with its interval and the groups.

    Parameters
    ----------
    table : LabelTable
    pairs : LabelPairs
    product : ndarray of shape (n_pairs,)
        Covariance of the two errors, as observed.
    scale : ndarray of shape (n_pairs,)
        Product of their standard deviations.
    """
    n_labels = table.labels_per_item()
    n_votes = float(n_labels.sum() / max(np.count_nonzero(n_labels), 1))
    if scale.sum() <= 1e-9:
        return ErrorDependence(0.0, 0.0, 1.0, n_votes)
    value, error = _ratio(product, scale, table.item[pairs.first])
    bar = TWO_SIDED_90 * error
    # Sums over few labels may give more than 1.
    correlation, low, high = np.clip([value, value - bar, value + bar], -1, 1).tolist()
    return ErrorDependence(
        correlation, low, high, n_votes, find_groups(table, pairs, product, scale)
    )


def _ratio(product: Array, scale: Array, item: NDArray[Any]) -> _Ratio:
    """Divide sums; the standard error takes pairs of one item for dependent."""
    total = scale.sum()
    value = float(product.sum() / total)
    by_item = np.bincount(item, product - value * scale)
    return _Ratio(value, float(np.sqrt(np.square(by_item).sum()) / total))
