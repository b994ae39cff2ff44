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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from annotrace.diagnosis.counting import (
    drawn_counts,
    expected_counts,
    label_scores,
    normalised,
    report_matrix,
)
from annotrace.diagnosis.crowd_prior import CrowdPrior, estimate_crowd_prior
from annotrace.diagnosis.matrix_moments import Moments, draw_matrices, moments_given_truths
from annotrace.labels.table import LabelTable

MOST_DRAWS, FEWEST_DRAWS = 40, 10
# Numbers to draw from in all: half a million labels of ten classes take some 10 s on one core.
_WORK = 4e7


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


def beta_interval(
    mean: NDArray[Any], variance: NDArray[Any], level: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give the central interval of Beta distributions with some means and variances.

    Parameters
    ----------
    mean, variance : ndarray
    level : float
        Between 0 and 1.
    """
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    size = mean * (1 - mean) / np.maximum(variance, 1e-12) - 1
    size = np.clip(size, 1e-3, 1e9)
    a, b = mean * size, (1 - mean) * size
    ends = [np.asarray(betaincinv(a, b, end)) for end in ((1 - level) / 2, (1 + level) / 2)]
    return ends[0], ends[1]


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
        Draws that count, after as many that do not: 40 unless given, down to 10 where tables are
        large, and each draw averages over more.
    seed : int
        The same seed gives the same moments.
    """
    rng = np.random.default_rng(seed)
    n_draws = _affordable(table) if n_draws is None else n_draws
    reports = report_matrix(table)
    posterior = normalised(log_prior + label_scores(reports, confusion))
    prior = estimate_crowd_prior(expected_counts(reports, posterior), seed)
    labelled = table.labels_per_annotator() > 0
    gathered = _Gathered()
    for step in range(2 * n_draws):
        truth = _draw_rows(posterior, rng)
        counts = drawn_counts(table, truth)
        if step in (n_draws // 2, n_draws):
            prior = estimate_crowd_prior(counts, seed)
        matrices = draw_matrices(counts, prior, rng)
        if step >= n_draws:
            mean = matrices[labelled].mean(axis=0) if labelled.any() else matrices.mean(axis=0)
            gathered.add(moments_given_truths(counts, prior, matrices), counts, mean)
        if len(truth):
            log_prior = log_prior + _draw_shift(log_prior, truth, rng)
        posterior = normalised(log_prior + label_scores(reports, matrices))
    return gathered.finish(prior)


def _affordable(table: LabelTable) -> int:
    n_classes = table.n_classes
    size = (table.n_labels + table.n_annotators * n_classes) * n_classes
    return int(np.clip(_WORK / max(size, 1), FEWEST_DRAWS, MOST_DRAWS))


class _Gathered:
    """Sums over draws: of first and second moments, and of counts."""

    def __init__(self) -> None:
        self.means: list[NDArray[Any]] = []

    def add(self, moments: Moments, counts: NDArray[Any], mean: NDArray[Any]) -> None:
        if not self.means:
            self.sums, self.counts = moments.raw(), counts.astype(np.float64)
        else:
            self.counts += counts
            for total, value in zip(self.sums, moments.raw(), strict=True):
                total += value
        self.means.append(mean)

    def finish(self, prior: CrowdPrior) -> CrowdPosterior:
        n_draws = len(self.means)
        moments = Moments.from_raw([total / n_draws for total in self.sums])
        return CrowdPosterior(moments, self.counts / n_draws, np.stack(self.means), prior)


def _draw_rows(probabilities: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Draw a class for each row of probabilities, shape (n_rows,)."""
    chance = rng.random(len(probabilities))[:, None]
    drawn: NDArray[Any] = (chance >= probabilities.cumsum(axis=1)).sum(axis=1)
    return drawn.clip(max=probabilities.shape[1] - 1)


def _draw_shift(
    log_prior: NDArray[Any], truth: NDArray[Any], rng: np.random.Generator
) -> NDArray[Any]:
    """Draw how common classes are, and give what the prior must be shifted by to agree.

    A classifier that learned from labels has learned too how common classes seem to be; held
    fast, that would hide how little the labels say of it.
    """
    n_classes = log_prior.shape[1]
    common = rng.dirichlet(np.bincount(truth, minlength=n_classes) + 1)
    said = normalised(log_prior).mean(axis=0)
    shift: NDArray[Any] = np.log(np.maximum(common, 1e-9) / np.maximum(said, 1e-9))
    return shift
