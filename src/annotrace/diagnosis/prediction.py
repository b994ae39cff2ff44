"""Whether the fitted crowd predicts labels that it has not seen.

Every label is predicted from all others: from the posterior of its item without it and the matrix
of its annotator without it. A crowd of spammers, and two classes that nobody can distinguish, may
look learned, because a method finds some pattern in any noise; but the pattern predicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.beta_interval import TWO_SIDED_90
from annotrace.crowd.excess_agreement import without_labels
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.identifiability import Estimate

Array: TypeAlias = NDArray[np.float64]

# The pool's matrix and label marginal count as so many labels when a label is predicted.
POOL_LABELS = 5.0
# Labels that are predicted, evenly spaced, probabilities of theirs, and cells of matrices for what
# the matrices claim.
MAX_LABELS, MAX_PROBABILITIES, MAX_CELLS = 30_000, 2e7, 2e6
# If only some labels are predicted, two classes are judged by so many on items of either.
MIN_SAMPLED = 30


class PairInformation(NamedTuple):
    """How well labels distinguish two classes.

    Attributes
    ----------
    classes : tuple of two int
    gain : Estimate
        Nats per label by which labels of items of either class are predicted better than if both
        were one class.
    claimed : float
        What the gain would be if the matrices were right; NaN if too few labels were sampled.
    """

    classes: tuple[int, int]
    gain: Estimate
    claimed: float


@dataclass(frozen=True, eq=False)
class LabelPrediction:
    """Predictions of n labels, each from all others.

    Attributes
    ----------
    truth : ndarray of shape (n, n_classes)
        Posterior of the item from its other labels.
    reported, labelled : ndarray of shape (n, n_classes)
        Other equal labels, and all other labels, of the annotator for each true class.
    shares : ndarray of shape (n, n_classes)
        Share of the label among all annotators' for each true class.
    marginal : ndarray of shape (n,)
        Probability of the label from its annotator's label marginal.
    matrices : ndarray of shape (n_claims, n_classes, n_classes)
        Of the annotators of every `step`-th label.
    class_labels : ndarray of shape (n_classes,)
        Labels of items of each class.
    """

    truth: Array
    reported: Array
    labelled: Array
    shares: Array
    marginal: Array
    matrices: Array
    class_labels: Array
    step: int
    is_sample: bool

    def information(self) -> Estimate:
        """Nats per label by which the truth predicts labels better than label marginals do."""
        if len(self.truth) == 0:
            return Estimate(0.0, 0.0, 0.0)
        gain = _log_ratio(self._predicted, self.marginal)
        return _mean_gain(gain, np.ones_like(gain))

    def pair_information(self, pairs: Iterable[tuple[int, int]]) -> list[PairInformation]:
        """Measure how well pairs of classes are distinguished, those with enough labels."""
        if len(self.truth) == 0:
            return []
        by_matrices = np.einsum("ni,nij->nj", self.truth[:: self.step], self.matrices)
        found = []
        for pair in pairs:
            gain, weight = self._gains(pair)
            if not self.is_sample or weight.sum() >= MIN_SAMPLED:
                claimed = self._claimed(pair, by_matrices)
                found.append(PairInformation(pair, _mean_gain(gain, weight), claimed))
        return found

    @cached_property
    def _likelihood(self) -> Array:
        """Probability of each label for each true class, (n, n_classes)."""
        likelihood: Array = self.reported + POOL_LABELS * self.shares
        likelihood /= self.labelled + POOL_LABELS
        return likelihood

    @cached_property
    def _predicted(self) -> Array:
        """Probability of each label, (n,)."""
        predicted: Array = (self.truth * self._likelihood).sum(axis=1)
        return predicted

    def _shares_of(self, pair: tuple[int, int]) -> Array:
        n_labels = self.class_labels[list(pair)]
        shares: Array = n_labels / n_labels.sum()
        return shares

    def _gains(self, pair: tuple[int, int]) -> tuple[Array, Array]:
        """Return the gains of labels on items of either class and the weights of these labels."""
        both = self.truth[:, pair].sum(axis=1)
        near = np.flatnonzero(both > 1e-3) if self.is_sample else np.arange(len(both))
        cells = near[:, None], np.array(pair)
        reported = self.reported[cells].sum(axis=1)
        reported += POOL_LABELS * self.shares[cells] @ self._shares_of(pair)
        merged = both[near] * reported / (self.labelled[cells].sum(axis=1) + POOL_LABELS)
        apart = (self.truth[cells] * self._likelihood[cells]).sum(axis=1)
        whole = self._predicted[near]
        return _log_ratio(whole, whole - apart + merged), both[near]

    def _claimed(self, pair: tuple[int, int], whole: Array) -> float:
        """Return the gain if labels were drawn from the matrices."""
        rows, weights = self.matrices[:, pair], self.truth[:: self.step, pair]
        both = weights.sum(axis=1)
        merged = whole + both[:, None] * np.einsum("c,ncj->nj", self._shares_of(pair), rows)
        merged -= np.einsum("nc,ncj->nj", weights, rows)
        if self.is_sample and both.sum() < MIN_SAMPLED:
            return float("nan")
        return float((whole * _log_ratio(whole, merged)).sum() / max(both.sum(), 1e-9))


def predict_labels(result: CrowdResult) -> LabelPrediction:
    """Predict every label of a fitted crowd, or a sample of them, from all others."""
    table, annotators = result.table, result.annotators
    usable = np.flatnonzero(result.is_counted[table.item])
    n_claims = int(MAX_CELLS / table.n_classes**2) + 1
    n = min(len(usable), MAX_LABELS, int(MAX_PROBABILITIES / table.n_classes))
    rows = usable[np.linspace(0, len(usable) - 1, n).astype(np.int64)] if n else usable
    item, annotator, label = table.item[rows], table.annotator[rows], table.label[rows]
    own, counts = annotators.item_posterior[item].astype(np.float64), annotators.counts
    pool = counts.sum(axis=0) + 1e-3
    marginals = counts.sum(axis=1)
    marginal = marginals[annotator, label] - 1 + POOL_LABELS * (pool.sum(0) / pool.sum())[label]
    step = max(-(-n // n_claims), 1)
    return LabelPrediction(
        truth=without_labels(own, annotators.mean[annotator, :, label]),
        reported=np.maximum(counts[annotator, :, label] - own, 0),
        labelled=np.maximum(counts.sum(axis=2)[annotator] - own, 0),
        shares=(pool / pool.sum(axis=1, keepdims=True)).T[label],
        marginal=marginal / (marginals.sum(axis=1)[annotator] - 1 + POOL_LABELS),
        matrices=annotators.mean[annotator[::step]],
        class_labels=pool.sum(axis=1),
        step=step,
        is_sample=n < len(usable) or step > 1,
    )


def _log_ratio(one: NDArray[Any], other: NDArray[Any]) -> Array:
    ratio: Array = np.log(np.maximum(one, 1e-12) / np.maximum(other, 1e-12))
    return ratio


def _mean_gain(gain: Array, weight: Array) -> Estimate:
    """Divide the sum of gains by the sum of weights, with a 90 % interval."""
    total = max(float(weight.sum()), 1e-9)
    value = float(gain.sum()) / total
    bar = TWO_SIDED_90 * float(np.sqrt(np.square(gain - value * weight).sum())) / total
    return Estimate(value, value - bar, value + bar)
