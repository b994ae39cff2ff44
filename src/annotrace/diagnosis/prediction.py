"""Whether what was learned predicts labels that it has not seen.

Every label is predicted from all others: by the truth of its item without it and the matrix of
its annotator without it. A crowd of spammers, and two classes that nobody tells apart, may look
learned, for a method finds some pattern in any noise; but the pattern predicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.counting import (
    expected_counts,
    label_scores,
    log_columns,
    normalised,
    report_matrix,
)
from annotrace.diagnosis.identifiability import TWO_SIDED_90, Estimate
from annotrace.labels.table import LabelTable

# Labels' worth of the pool's matrix and habit when a label is predicted.
_POOL = 5.0
# Matrix cells at a time, and in all: of more labels a sample is enough.
_CELLS_AT_ONCE, _CELLS = 4e6, 2e7


class PairInformation(NamedTuple):
    """How well two classes are told apart.

    Attributes
    ----------
    classes : tuple of two int
    gain : Estimate
        Nats a label by which labels on items of either are predicted better than if both were
        one class.
    claimed : float
        What the gain would be if the matrices were right.
    """

    classes: tuple[int, int]
    gain: Estimate
    claimed: float


@dataclass(frozen=True)
class _Predicted:
    """Labels that are predicted, n of them, and what predicts them."""

    truth: NDArray[Any]  # (n, n_classes): of the item, from its other labels
    reported: NDArray[Any]  # (n, n_classes): labels alike by the annotator, for each true class
    labelled: NDArray[Any]  # (n, n_classes): all labels by the annotator, for each true class
    shares: NDArray[Any]  # (n, n_classes): of the label in the pool, for each true class
    habit: NDArray[Any]  # (n,): probability of the label by its annotator's habit
    matrices: NDArray[Any]  # (n, n_classes, n_classes): of the annotator

    @cached_property
    def columns(self) -> NDArray[Any]:
        """Probability of the label for each true class, (n, n_classes)."""
        found: NDArray[Any] = (self.reported + _POOL * self.shares) / (self.labelled + _POOL)
        return found

    @cached_property
    def any_label(self) -> NDArray[Any]:
        """Probability of every label by the annotator's matrix, (n, n_classes)."""
        found: NDArray[Any] = np.einsum("ni,nij->nj", self.truth, self.matrices)
        return found


class LabelPrediction:
    """Predictions of the labels of a table, each from all others.

    Parameters
    ----------
    table : LabelTable
    log_prior : ndarray of shape (n_items, n_classes)
        What is known of each item without its labels.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    """

    def __init__(self, table: LabelTable, log_prior: NDArray[Any], confusion: NDArray[Any]) -> None:
        reports = report_matrix(table)
        self.table, self.confusion = table, confusion
        self.scores = log_prior + label_scores(reports, confusion)
        self.counts = expected_counts(reports, normalised(self.scores))
        self.columns = log_columns(confusion)
        self.pool = self.counts.sum(axis=0) + 1e-3

    def information(self) -> Estimate:
        """Nats a label by which the truth predicts labels better than their annotator's habit."""
        if self.table.n_labels == 0:
            return Estimate(0.0, 0.0, 0.0)
        gains = []
        for part in self._parts:
            predicted = (part.truth * part.columns).sum(axis=1)
            gains.append(_log_ratio(predicted, part.habit))
        gain = np.concatenate(gains)
        return _mean_gain(gain, np.ones_like(gain))

    def pair_information(self, pairs: Iterable[tuple[int, int]]) -> list[PairInformation]:
        """Tell how well some pairs of classes are told apart."""
        pairs = list(pairs)
        gathered: list[list[NDArray[Any]]] = [[] for _ in pairs]
        for part in self._parts:
            for own, pair in zip(gathered, pairs, strict=True):
                own.append(self._pair_gains(part, *pair))
        found = []
        for own, pair in zip(gathered, pairs, strict=True):
            gain, weight, claimed = np.concatenate(own, axis=1)
            total = max(float(weight.sum()), 1e-9)
            claim = float(claimed.sum()) / total
            found.append(PairInformation(pair, _mean_gain(gain, weight), claim))
        return found

    def _pair_gains(self, part: _Predicted, i: int, k: int) -> NDArray[Any]:
        """Give each label's gain, its weight, and the gain claimed: shape (3, n)."""
        both, columns = part.truth[:, i] + part.truth[:, k], part.columns
        apart = part.truth[:, i] * columns[:, i] + part.truth[:, k] * columns[:, k]
        common = self.pool[[i, k]].sum(axis=1)
        common = common / common.sum()
        reported = (
            part.reported[:, i] + part.reported[:, k] + _POOL * part.shares[:, [i, k]] @ common
        )
        merged = both * reported / (part.labelled[:, i] + part.labelled[:, k] + _POOL)
        whole = (part.truth * columns).sum(axis=1)
        gain = _log_ratio(whole, whole - apart + merged)
        return np.stack([gain, both, _claimed(part, i, k, common)])

    @cached_property
    def _parts(self) -> list[_Predicted]:
        """The labels, or a sample spread evenly over them, by parts."""
        table, cells = self.table, self.table.n_classes**2
        n_chosen = min(table.n_labels, int(_CELLS / cells) + 1)
        chosen = np.linspace(0, table.n_labels - 1, n_chosen).astype(np.int64)
        n_parts = int(np.ceil(n_chosen * cells / _CELLS_AT_ONCE))
        return [self._predict(rows) for rows in np.array_split(chosen, max(n_parts, 1))]

    def _predict(self, rows: NDArray[np.int64]) -> _Predicted:
        table, counts, pool = self.table, self.counts, self.pool
        item, annotator, label = table.item[rows], table.annotator[rows], table.label[rows]
        own = normalised(self.scores[item])
        habit = counts[annotator].sum(axis=1)
        used = habit[np.arange(len(rows)), label] - 1 + _POOL * (pool.sum(0) / pool.sum())[label]
        return _Predicted(
            truth=normalised(self.scores[item] - self.columns[annotator, label]),
            reported=np.maximum(counts[annotator, :, label] - own, 0),
            labelled=np.maximum(counts[annotator].sum(axis=2) - own, 0),
            shares=(pool / pool.sum(axis=1, keepdims=True)).T[label],
            habit=used / (habit.sum(axis=1) - 1 + _POOL),
            matrices=self.confusion[annotator],
        )


def _claimed(part: _Predicted, i: int, k: int, common: NDArray[Any]) -> NDArray[Any]:
    """Gain of each label in the mean if it were drawn from the matrices, shape (n,)."""
    whole = part.any_label
    two, weights = part.matrices[:, [i, k]], part.truth[:, [i, k]]
    both = weights.sum(axis=1)[:, None]
    merged = whole + both * np.einsum("c,ncj->nj", common, two)
    merged -= np.einsum("nc,ncj->nj", weights, two)
    claimed: NDArray[Any] = (whole * _log_ratio(whole, merged)).sum(axis=1)
    return claimed


def _log_ratio(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    ratio: NDArray[Any] = np.log(np.maximum(one, 1e-12) / np.maximum(other, 1e-12))
    return ratio


def _mean_gain(gain: NDArray[Any], weight: NDArray[Any]) -> Estimate:
    """Sum of gains by the sum of weights, with its 90 % interval."""
    total = max(float(weight.sum()), 1e-9)
    value = float(gain.sum()) / total
    bar = TWO_SIDED_90 * float(np.sqrt(np.square(gain - value * weight).sum())) / total
    return Estimate(value, value - bar, value + bar)
