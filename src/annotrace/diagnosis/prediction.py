"""Whether what was learned predicts labels that it has not seen.

Every label is predicted from all others: by the truth of its item without it and the matrix of
its annotator without it. A crowd of spammers, and two classes that nobody tells apart, may look
learned, for a method finds some pattern in any noise; but the pattern predicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
# Matrix cells at a time, and in all: of more labels a sample is enough to know what is claimed.
_CELLS_AT_ONCE, _CELLS = 4e6, 2e7
# Labels that are predicted, unless cells allow more: on 1,000 classes 200 for every two of them.
_SAMPLE = 100_000
# Where labels claim by a sample, two classes are judged by so many labels on items of either, and
# an item is of neither that is so with a smaller chance.
_LEAST_SAMPLED, _FAINT = 30, 1e-3


class PairInformation(NamedTuple):
    """How well two classes are told apart.

    Attributes
    ----------
    classes : tuple of two int
    gain : Estimate
        Nats a label by which labels on items of either are predicted better than if both were
        one class.
    claimed : float
        What the gain would be if the matrices were right; NaN where too few labels were sampled.
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
    annotator: NDArray[Any]  # (n,)
    confusion: NDArray[Any]  # (n_annotators, n_classes, n_classes)
    claims: slice  # the n_claims labels of which it is asked what matrices claim

    @cached_property
    def columns(self) -> NDArray[Any]:
        """Probability of the label for each true class, (n, n_classes)."""
        found: NDArray[Any] = (self.reported + _POOL * self.shares) / (self.labelled + _POOL)
        return found

    @cached_property
    def predicted(self) -> NDArray[Any]:
        """Probability of the label, (n,)."""
        found: NDArray[Any] = (self.truth * self.columns).sum(axis=1)
        return found

    @cached_property
    def matrices(self) -> NDArray[Any]:
        """Of the annotators of claims, (n_claims, n_classes, n_classes)."""
        found: NDArray[Any] = self.confusion[self.annotator[self.claims]]
        return found

    @cached_property
    def any_label(self) -> NDArray[Any]:
        """Probability of every label by the matrices of claims, (n_claims, n_classes)."""
        found: NDArray[Any] = np.einsum("ni,nij->nj", self.truth[self.claims], self.matrices)
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
        self.habits, self.labelled = self.counts.sum(axis=1), self.counts.sum(axis=2)
        n_claims = int(_CELLS / table.n_classes**2) + 1
        self.n_predicted = min(table.n_labels, max(n_claims, _SAMPLE))
        self.step = max(-(-self.n_predicted // n_claims), 1)

    def information(self) -> Estimate:
        """Nats a label by which the truth predicts labels better than their annotator's habit."""
        if self.table.n_labels == 0:
            return Estimate(0.0, 0.0, 0.0)
        gain = np.concatenate([_log_ratio(part.predicted, part.habit) for part in self._parts()])
        return _mean_gain(gain, np.ones_like(gain))

    def pair_information(self, pairs: Iterable[tuple[int, int]]) -> list[PairInformation]:
        """Tell how well pairs of classes are told apart, those with enough sampled labels."""
        pairs = list(pairs)
        commons = [self._common(pair) for pair in pairs]
        gains: list[list[NDArray[Any]]] = [[] for _ in pairs]
        claims: list[list[NDArray[Any]]] = [[] for _ in pairs]
        for part in self._parts():
            for place, (pair, common) in enumerate(zip(pairs, commons, strict=True)):
                gains[place].append(self._pair_gains(part, pair, common))
                claims[place].append(_claimed(part, pair, common))
        least = _LEAST_SAMPLED if self.step > 1 else 0
        found = []
        for pair, own_gains, own_claims in zip(pairs, gains, claims, strict=True):
            gain, weight = np.concatenate(own_gains, axis=1)
            claimed, total = np.concatenate(own_claims, axis=1).sum(axis=1).tolist()
            claim = claimed / max(total, 1e-9) if total >= least else float("nan")
            if weight.sum() >= least:
                found.append(PairInformation(pair, _mean_gain(gain, weight), claim))
        return found

    def _common(self, pair: tuple[int, int]) -> NDArray[Any]:
        """Give how common each of two classes is among labels on items of either, (2,)."""
        n_labels = self.pool[list(pair)].sum(axis=1)
        common: NDArray[Any] = n_labels / n_labels.sum()
        return common

    def _pair_gains(
        self, part: _Predicted, pair: tuple[int, int], common: NDArray[Any]
    ) -> NDArray[Any]:
        """Give the gain of labels that may be on items of two classes, and their weight, (2, n)."""
        both = part.truth[:, pair[0]] + part.truth[:, pair[1]]
        near = np.flatnonzero(both >= (_FAINT if self.step > 1 else 0))
        cells = near[:, None], np.array(pair)
        reported = part.reported[cells].sum(axis=1) + _POOL * part.shares[cells] @ common
        merged = both[near] * reported / (part.labelled[cells].sum(axis=1) + _POOL)
        apart = (part.truth[cells] * part.columns[cells]).sum(axis=1)
        whole = part.predicted[near]
        return np.stack([_log_ratio(whole, whole - apart + merged), both[near]])

    def _parts(self) -> Iterator[_Predicted]:
        """Predict the labels, or a sample spread evenly over them, part by part."""
        n, n_classes = self.n_predicted, self.table.n_classes
        chosen = np.linspace(0, self.table.n_labels - 1, n).astype(np.int64)
        n_cells = max(n * n_classes, n // self.step * n_classes**2)
        n_parts = max(int(np.ceil(n_cells / _CELLS_AT_ONCE)), 1)
        return map(self._predict, np.array_split(chosen, n_parts))

    def _predict(self, rows: NDArray[np.int64]) -> _Predicted:
        table, pool = self.table, self.pool
        item, annotator, label = table.item[rows], table.annotator[rows], table.label[rows]
        own = normalised(self.scores[item])
        habit = self.habits[annotator, label] - 1 + _POOL * (pool.sum(0) / pool.sum())[label]
        return _Predicted(
            truth=normalised(self.scores[item] - self.columns[annotator, label]),
            reported=np.maximum(self.counts[annotator, :, label] - own, 0),
            labelled=np.maximum(self.labelled[annotator] - own, 0),
            shares=(pool / pool.sum(axis=1, keepdims=True)).T[label],
            habit=habit / (self.habits[annotator].sum(axis=1) - 1 + _POOL),
            annotator=annotator,
            confusion=self.confusion,
            claims=slice(None, None, self.step),
        )


def _claimed(part: _Predicted, pair: tuple[int, int], common: NDArray[Any]) -> NDArray[Any]:
    """Give the gain of labels in the mean if drawn from the matrices, and weight, (2, n_claims)."""
    whole = part.any_label
    two, weights = part.matrices[:, pair], part.truth[part.claims][:, pair]
    both = weights.sum(axis=1)
    merged = whole + both[:, None] * np.einsum("c,ncj->nj", common, two)
    merged -= np.einsum("nc,ncj->nj", weights, two)
    return np.stack([(whole * _log_ratio(whole, merged)).sum(axis=1), both])


def _log_ratio(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    ratio: NDArray[Any] = np.log(np.maximum(one, 1e-12) / np.maximum(other, 1e-12))
    return ratio


def _mean_gain(gain: NDArray[Any], weight: NDArray[Any]) -> Estimate:
    """Sum of gains by the sum of weights, with its 90 % interval."""
    total = max(float(weight.sum()), 1e-9)
    value = float(gain.sum()) / total
    bar = TWO_SIDED_90 * float(np.sqrt(np.square(gain - value * weight).sum())) / total
    return Estimate(value, value - bar, value + bar)
