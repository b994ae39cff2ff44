"""Whether judges become better or worse over time.

A provider may replace the model behind a name. In each period a judge's labels are compared with
gold, else with people, else with the other judges. If all judges move together, the items have
changed rather than the judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import false_discovery_control

from annotrace.judges.estimates import Array, Estimate, ratio_variance, share_estimate
from annotrace.labels.table import LabelTable

# The false discovery rate among judges that are said to drift.
RATE = 0.05


class PeriodScore(NamedTuple):
    """A judge in one period: the number of labels compared, and the share that agrees."""

    judge: Any
    period: str
    n_labels: int
    agreement: Estimate


class Drift(NamedTuple):
    """The trend of a judge.

    Attributes
    ----------
    change : float
        Fitted difference of agreement between the last and the first period.
    p_value : float
        Of no trend, by the test of Cochran and Armitage.
    is_significant : bool
        After the correction of Benjamini and Hochberg for several judges.
    """

    judge: Any
    change: float
    p_value: float
    is_significant: bool


def scores_by_period(
    table: LabelTable, votes: NDArray[Any], period: NDArray[np.int64], names: Sequence[str]
) -> list[PeriodScore]:
    """Return the agreement of each judge with votes in each period.

    Parameters
    ----------
    table : LabelTable
    votes : ndarray of shape (n_labels, n_classes)
        What each label is compared with; labels without votes are left out.
    period : ndarray of int, shape (n_labels,)
        -1 if unknown.
    names : sequence of str
        Of the periods.
    """
    equal, n_votes = _compared(table, votes)
    scores = []
    for judge, rows in _rows_by_judge(table, (period >= 0) & (n_votes > 0)):
        for code, name in enumerate(names):
            own = rows[period[rows] == code]
            if len(own):
                part, whole = equal[own], n_votes[own]
                variance = ratio_variance(part, whole, table.item[own])
                share = share_estimate(part.sum() / whole.sum(), len(own), variance)
                scores.append(PeriodScore(judge, name, len(own), share))
    return scores


def drifts(table: LabelTable, votes: NDArray[Any], period: NDArray[np.int64]) -> list[Drift]:
    """Test the trend of each judge over periods; parameters as in `scores_by_period`."""
    equal, n_votes = _compared(table, votes)
    found = []
    for judge, rows in _rows_by_judge(table, (period >= 0) & (n_votes > 0)):
        share = equal[rows] / n_votes[rows]
        found.append(Drift(judge, *_trend(period[rows].astype(float), share), False))
    if not found:
        return []
    adjusted = false_discovery_control([each.p_value for each in found])
    return [
        each._replace(is_significant=bool(p <= RATE))
        for each, p in zip(found, adjusted, strict=True)
    ]


def _compared(table: LabelTable, votes: NDArray[Any]) -> tuple[Array, Array]:
    """Return the votes that equal each label, and all votes, both (n_labels,)."""
    equal = votes[np.arange(table.n_labels), table.label]
    return equal.astype(np.float64), votes.sum(axis=1).astype(np.float64)


def _rows_by_judge(
    table: LabelTable, kept: NDArray[np.bool_]
) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    for code, judge in enumerate(table.annotators.tolist()):
        yield judge, np.flatnonzero(kept & (table.annotator == code))


def _trend(time: Array, share: Array) -> tuple[float, float]:
    """Return the fitted change over the whole time, and the p-value of no trend."""
    if len(time) < 3 or np.ptp(time) == 0 or np.ptp(share) == 0:
        return 0.0, 1.0
    centred = time - time.mean()
    slope = float(centred @ share / (centred @ centred))
    correlation = float(np.corrcoef(time, share)[0, 1])
    z = correlation * np.sqrt(len(time) - 1)
    return slope * float(np.ptp(time)), float(2 * ndtr(-abs(z)))
