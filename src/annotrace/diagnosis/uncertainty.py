"""How far estimates of annotators can be trusted: posterior moments of every matrix and skill.

The truth of items and the matrices of annotators are both unknown, and each rests on the other.
So both are drawn in turn (Gibbs sampling), the classifier's word on each item being given:

- truths: classifier times likelihood of all labels under the matrices drawn;
- how common classes are: by the truths drawn;
- matrices: `crowd_prior`, updated by the counts of labels under the truths drawn.

Given truths, the mean and variance of a matrix are known exactly; they are averaged over draws,
and a Beta distribution with these moments gives intervals. An annotator without labels has the
prior: the pool, and its spread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.beta_quantiles import beta_interval
from annotrace.diagnosis.counting import (
    drawn_counts,
    expected_counts,
    log_columns,
    normalised,
    report_matrix,
    scores_of,
)
from annotrace.diagnosis.crowd_prior import (
    ENOUGH_ANNOTATORS,
    CrowdPrior,
    estimate_crowd_prior,
)
from annotrace.diagnosis.matrix_moments import (
    MatricesGivenTruths,
    Moments,
    MomentSums,
    SharedErrors,
    chunks,
)
from annotrace.labels.table import LabelTable

# Draws that count, and the numbers to draw from in all that they may take. With fewer than 5 means
# would be noisy: five are within .12 of half an interval of the mean over 160 draws where a
# classifier is good, .23 where it is poor. In 150 items of three labels the deviation of skills
# between seeds is .05 to .11 of that half; with 40 draws and a prior by one, .14 to .29.
FEWEST_DRAWS, DRAWS, MOST_DRAWS = 5, 40, 200
_WORK, _LITTLE_WORK = 4e7, 4e6


@dataclass(frozen=True)
class CrowdPosterior:
    """What is known of annotators: moments of their matrices and skills.

    Attributes
    ----------
    moments : Moments
        Means and variances of cells and skills.
    counts : ndarray of shape (n_annotators, n_classes, n_classes)
        Labels behind each cell: [annotator, true, reported], mean over draws.
    mean_draws : ndarray of shape (n_draws, n_classes, n_classes)
        Draws of the mean matrix over annotators who have labels.
    prior : CrowdPrior
    """

    moments: Moments
    counts: NDArray[np.float64]
    mean_draws: NDArray[np.float64]
    prior: CrowdPrior

    def cells(self, level: float = 0.9) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the interval of every cell, two arrays (n_annotators, n_classes, n_classes)."""
        return beta_interval(self.moments.cell_mean, self.moments.cell_variance, level)

    def skills(self, level: float = 0.9) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the interval of every skill, two arrays of shape (n_annotators,)."""
        return beta_interval(self.moments.skill_mean, self.moments.skill_variance, level)

    def informedness(self, level: float = 0.9) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the interval of how much reports depend on the truth, 0 to 1, (n_annotators,)."""
        return beta_interval(self.moments.informed_mean, self.moments.informed_variance, level)

    def advantage(self, level: float = 0.9) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the interval of how much oftener than blindly reports are right, -1 to 1."""
        mean, variance = self.moments.advantage_mean, self.moments.advantage_variance
        low, high = beta_interval((1 + mean) / 2, variance / 4, level)
        return 2 * low - 1, 2 * high - 1


def crowd_posterior(
    table: LabelTable,
    log_prior: NDArray[Any],
    confusion: NDArray[Any],
    *,
    n_draws: int | None = None,
    seed: int = 0,
) -> CrowdPosterior:
    """Draw truths and matrices in turn, and give the moments of matrices.

    Parameters
    ----------
    table : LabelTable
    log_prior : ndarray of shape (n_items, n_classes)
        What is known of each item without its labels, as log probabilities up to a constant:
        what a classifier says, or how common classes are.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Where the draws start.
    n_draws : int, optional
        Draws that count, after as many that do not: 200 unless given, down to 5 where tables are
        large, and each draw averages over more.
    seed : int
        The same seed gives the same moments.
    """
    rng = np.random.default_rng(seed)
    n_draws = _affordable(table) if n_draws is None else n_draws
    truths = _Truths(table, log_prior)
    prior = estimate_crowd_prior(truths.expected_counts(confusion)[None], seed)
    matrices = _Matrices(table, confusion)
    recent = _Recent(n_draws, table.n_annotators)
    for step in range(2 * n_draws):
        truth = truths.draw(matrices.log_columns, rng)
        counts = drawn_counts(table, truth)
        recent.add(step, counts)
        if step in (n_draws // 2, n_draws):
            prior = estimate_crowd_prior(recent.counts(), seed)
        matrices.draw(counts, prior, rng, gather=step >= n_draws)
        truths.draw_shift(truth, rng)
    return matrices.posterior(prior)


def _affordable(table: LabelTable) -> int:
    n_classes = table.n_classes
    size = (table.n_labels + table.n_annotators * n_classes) * n_classes
    few = min(_WORK / max(size, 1), DRAWS)
    return int(np.clip(_LITTLE_WORK / max(size, 1), max(few, FEWEST_DRAWS), MOST_DRAWS))


class _Recent:
    """Counts of some draws before the last: by one alone the prior would hang on the seed."""

    def __init__(self, n_draws: int, n_annotators: int) -> None:
        n_kept = int(np.clip(ENOUGH_ANNOTATORS // max(n_annotators, 1), 1, 8))
        self._apart = max(n_draws // (4 * n_kept), 1)
        self._kept: deque[NDArray[np.int64]] = deque(maxlen=n_kept)

    def add(self, step: int, counts: NDArray[np.int64]) -> None:
        """Keep the counts of a draw, if it is far enough from the last that were kept."""
        if step % self._apart == 0:
            self._kept.append(counts)

    def counts(self) -> NDArray[np.int64]:
        """Give what was kept, shape (n_kept, n_annotators, n_classes, n_classes)."""
        return np.stack(self._kept)


class _Matrices:
    """The matrices of all annotators, drawn anew at every step, and what is gathered of them."""

    def __init__(self, table: LabelTable, confusion: NDArray[Any]) -> None:
        self.log_columns = log_columns(confusion)
        n_labels = table.labels_per_annotator()
        counted = n_labels > 0 if n_labels.any() else np.ones(len(n_labels), bool)
        self._shares = counted / max(int(counted.sum()), 1)
        self._sums = MomentSums(table.n_annotators, table.n_classes)
        self._counts = np.zeros_like(self.log_columns)
        self._means: list[NDArray[np.float64]] = []

    def draw(
        self, counts: NDArray[Any], prior: CrowdPrior, rng: np.random.Generator, *, gather: bool
    ) -> None:
        """Draw matrices given the truths behind some counts, and gather their moments."""
        mean = np.zeros(counts.shape[1:])
        enough = SharedErrors.enough(counts.shape[1])
        errors = SharedErrors(enough, prior, rng) if len(counts) > enough else None
        n_labels = counts.sum(axis=(0, 2)) + 1
        common = n_labels / n_labels.sum()
        for who in chunks(*counts.shape[:2]):
            given = MatricesGivenTruths(counts[who], prior)
            drawn = given.draw(rng, None if errors is None else errors.take(who))
            mean += np.tensordot(self._shares[who], drawn, axes=1)
            self.log_columns[who] = log_columns(drawn)
            if gather:
                self._sums.add(who, given.raw_moments(drawn, common))
        if gather:
            self._counts += counts
            self._means.append(mean)

    def posterior(self, prior: CrowdPrior) -> CrowdPosterior:
        """Give the moments over all draws that were gathered."""
        n_draws = len(self._means)
        moments = self._sums.moments(n_draws)
        return CrowdPosterior(moments, self._counts / n_draws, np.stack(self._means), prior)


class _Truths:
    """The truths of all items, drawn anew at every step.

    Items are taken by parts that fit into a cache, and classes are the first axis of a part: sums
    over ten numbers that lie side by side would be what costs.
    """

    def __init__(self, table: LabelTable, log_prior: NDArray[Any]) -> None:
        self._n_items, self._n_classes = log_prior.shape
        self._shift = np.zeros(self._n_classes)
        self._reports = report_matrix(table)
        size = max(2**17 // self._n_classes, 1)
        self._parts = [
            (slice(k, k + size), log_prior[k : k + size], self._reports[k : k + size])
            for k in range(0, self._n_items, size)
        ]

    def expected_counts(self, confusion: NDArray[Any]) -> NDArray[np.float64]:
        """Count who reported what where nothing was drawn yet, (n_annotators, n_classes, ...)."""
        columns = log_columns(confusion)
        posterior = np.empty((self._n_items, self._n_classes))
        for which, log_prior, reports in self._parts:
            posterior[which] = normalised(log_prior + scores_of(reports, columns))
        return expected_counts(self._reports, posterior)

    def draw(self, columns: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the class of every item, shape (n_items,), given the matrices' log columns."""
        truth = np.empty(self._n_items, np.int64)
        self._common = np.zeros(self._n_classes)
        for which, log_prior, reports in self._parts:
            known = (log_prior + self._shift).T.copy()
            said = np.add(known, scores_of(reports, columns).T, order="C")
            truth[which] = _draw_classes(said, rng.random((said.shape[1],)))
            self._common += _normalised_sum(known)
        return truth

    def draw_shift(self, truth: NDArray[np.int64], rng: np.random.Generator) -> None:
        """Draw how common classes are, and shift what is known of items to agree.

        A classifier that learned from labels has learned too how common classes seem to be; held
        fast, that would hide how little the labels say of it.
        """
        if len(truth) == 0:
            return
        common = rng.dirichlet(np.bincount(truth, minlength=self._n_classes) + 1)
        said = self._common / len(truth)
        self._shift += np.log(np.maximum(common, 1e-9) / np.maximum(said, 1e-9))


def _draw_classes(scores: NDArray[Any], chance: NDArray[Any]) -> NDArray[np.int64]:
    """Draw a class for each column of log probabilities (n_classes, n), using these up."""
    scores -= scores.max(axis=0)
    np.exp(scores, out=scores)
    for below, own in pairwise(scores):
        own += below
    chance = chance * scores[-1]
    drawn = np.zeros(len(chance), np.int64)
    for cumulative in scores[:-1]:
        drawn += chance >= cumulative
    return drawn


def _normalised_sum(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Turn columns of log probabilities into probabilities, and sum these, (n_classes,)."""
    scores -= scores.max(axis=0)
    np.exp(scores, out=scores)
    total: NDArray[np.float64] = scores @ (1 / scores.sum(axis=0))
    return total
