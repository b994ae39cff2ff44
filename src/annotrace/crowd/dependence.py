r"""Shared errors: how far annotators err on the same items, and what their labels then count for.

Labels of an item are worth as many votes as there are labels only if annotators err independently
given the true class. With a correlation :math:`\rho` between the errors of two annotators, n labels
count as :math:`n / (1 + (n - 1) \rho)` (Kish's effective sample size): ten judges that were trained
on the same texts may count as three.

With known truth the correlation is measured (`known_dependence`). Without, it shows in annotators
who agree more than the true class explains (`annotrace.crowd.excess_agreement`), but only in part:
an item on which all err alike looks like an easy item of another class. What is seen is scaled up
by what it was seen to be too small on other crowds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.crowd.beta_interval import TWO_SIDED_90
from annotrace.crowd.error_groups import ErrorGroup, effective_votes, find_groups
from annotrace.crowd.excess_agreement import compare_pairs, max_comparisons
from annotrace.crowd.label_pairs import MAX_PAIRS, LabelPairs, pair_labels
from annotrace.labels.codes import check_truth
from annotrace.labels.table import LabelTable

if TYPE_CHECKING:
    from annotrace.crowd.result import CrowdResult

__all__ = [
    "ErrorDependence",
    "ErrorGroup",
    "effective_votes",
    "estimated_dependence",
    "known_dependence",
    "predict_dependence",
]

Array = NDArray[np.float64]

# The correlation of errors divided by what excess agreement shows of it, from the default
# aggregation of 13 public crowds and 14 simulated families. Leaving out one crowd or family at a
# time gives 1.96 to 2.18 and, on those left out, a standard error of .07.
ATTENUATION = 2.1
MODEL_ERROR = 0.07
# Mean and standard deviation of the correlation, a priori. Of those tried, they give the smallest
# calibration error over the same crowds and families; so they do if one is left out, mostly, for
# .070 on those left out (.078 by one constant correlation for all crowds).
PRIOR_MEAN, PRIOR_SPREAD = 0.2, 0.15


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

    @property
    def error(self) -> float:
        """Standard error of the correlation."""
        return (self.high - self.low) / (2 * TWO_SIDED_90)

    @property
    def expected(self) -> float:
        """The correlation to discount labels by: shrunk towards that of other crowds."""
        reliability = PRIOR_SPREAD**2 / (PRIOR_SPREAD**2 + self.error**2)
        return reliability * max(self.correlation, 0.0) + (1 - reliability) * PRIOR_MEAN


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
    product, scale = (each[pairs.first] * each[pairs.second] for each in (residual, scale))
    groups = find_groups(known, pairs, product, scale)
    return _summarize(known, pairs, product, scale, groups)


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


def estimated_dependence(result: CrowdResult) -> ErrorDependence:
    """Estimate the correlation of annotators' errors from their labels, without known truth.

    Gold items that the fit has learned from are used as known truth.

    Parameters
    ----------
    result : CrowdResult
        Of a method that models annotators.
    """
    return result.annotators.dependence


def predict_dependence(
    table: LabelTable, matrices: Array, item_posterior: NDArray[Any], gold: NDArray[np.int32]
) -> ErrorDependence:
    """Estimate the correlation of errors from confusion matrices and the posterior of items.

    Parameters
    ----------
    table : LabelTable
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
    item_posterior : ndarray of shape (n_items, n_classes)
        Under these matrices.
    gold : ndarray of int, shape (n_items,)
        The class of gold items, -1 elsewhere.
    """
    if not np.any(gold >= 0):
        return _from_excess(table, matrices, item_posterior)
    rest = gold < 0
    unknown = _from_excess(table.select_items(rest), matrices, item_posterior[rest])
    return _combine(known_dependence(table, gold), unknown)


def _from_excess(
    table: LabelTable, matrices: Array, item_posterior: NDArray[Any]
) -> ErrorDependence:
    pairs = pair_labels(table, min(max_comparisons(table.n_classes), MAX_PAIRS))
    found = compare_pairs(table, matrices, item_posterior, pairs)
    # Groups by errors: two who are always right agree more than their shrunken matrices predict.
    groups = find_groups(table, pairs, found.errors, found.error_scale)
    return _summarize(table, pairs, ATTENUATION * found.excess, found.scale, groups, MODEL_ERROR)


def _combine(one: ErrorDependence, other: ErrorDependence) -> ErrorDependence:
    """Average two estimates by their precision; groups are those of the more precise one."""
    both = (one, other)
    precision = np.array([1 / max(each.high - each.low, 1e-6) ** 2 for each in both])
    share = precision / precision.sum()
    value = float(share @ [each.correlation for each in both])
    half = float(1 / np.sqrt(precision.sum()) / 2)
    n_votes = max(each.n_votes for each in both)
    best = both[int(precision.argmax())]
    return ErrorDependence(value, max(value - half, -1), min(value + half, 1), n_votes, best.groups)


def _summarize(
    table: LabelTable,
    pairs: LabelPairs,
    product: Array,
    scale: Array,
    groups: tuple[ErrorGroup, ...],
    model_error: float = 0.0,
) -> ErrorDependence:
    """Return the mean correlation over pairs, the sum of products divided by that of scales.

    The model error is that part of the standard error that more labels would not lessen.
    """
    n_labels = table.labels_per_item()
    n_votes = float(n_labels.sum() / max(np.count_nonzero(n_labels), 1))
    if scale.sum() <= 1e-9:
        return ErrorDependence(0.0, 0.0, 1.0, n_votes)
    value, error = _ratio(product, scale, table.item[pairs.first])
    bar = TWO_SIDED_90 * np.hypot(error, model_error)
    # Sums over few labels may give more than 1.
    correlation, low, high = np.clip([value, value - bar, value + bar], -1, 1).tolist()
    return ErrorDependence(correlation, low, high, n_votes, groups)


class _Ratio(NamedTuple):
    value: float
    error: float


def _ratio(product: Array, scale: Array, item: NDArray[Any]) -> _Ratio:
    """Divide sums; the standard error takes pairs of one item for dependent."""
    total = scale.sum()
    value = float(product.sum() / total)
    by_item = np.bincount(item, product - value * scale)
    return _Ratio(value, float(np.sqrt(np.square(by_item).sum()) / total))
