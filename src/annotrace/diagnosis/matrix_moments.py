"""Means, variances and draws of confusion matrices under `CrowdPrior`, the truths being given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.crowd_prior import CrowdPrior, split_counts, tilt_posterior

# Annotators at a time, so that (annotators, tilts) stays small.
_CHUNK = 8192


@dataclass(frozen=True)
class Moments:
    """Means and variances.

    Attributes
    ----------
    cell_mean, cell_variance : ndarray of shape (n_annotators, n_classes, n_classes)
    skill_mean, skill_variance : ndarray of shape (n_annotators,)
    informed_mean, informed_variance : ndarray of shape (n_annotators,)
        Of `informedness`.
    """

    cell_mean: NDArray[Any]
    cell_variance: NDArray[Any]
    skill_mean: NDArray[Any]
    skill_variance: NDArray[Any]
    informed_mean: NDArray[Any]
    informed_variance: NDArray[Any]

    def raw(self) -> list[NDArray[np.float64]]:
        """Give first and second moments about 0, which may be averaged over draws."""
        pairs = (
            (self.cell_mean, self.cell_variance),
            (self.skill_mean, self.skill_variance),
            (self.informed_mean, self.informed_variance),
        )
        return [part for mean, var in pairs for part in (mean.copy(), var + np.square(mean))]

    @classmethod
    def from_raw(cls, raw: Sequence[NDArray[np.float64]]) -> Moments:
        """Make of first and second moments about 0, in the order of `raw`."""
        pairs = zip(raw[::2], raw[1::2], strict=True)
        return cls(*(part for mean, second in pairs for part in (mean, second - np.square(mean))))


def informedness(matrices: NDArray[Any]) -> NDArray[np.float64]:
    """Tell how much reports depend on the truth: 0 where all rows are alike, 1 for identity.

    The root of the mean squared distance of rows from their mean; q for a matrix of
    q I + (1 - q) / n_classes, and for any habit of guessing in place of the last term.

    Parameters
    ----------
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)

    Returns
    -------
    ndarray of shape (n_annotators,)
    """
    n_classes = matrices.shape[1]
    from_mean = matrices - matrices.mean(axis=1, keepdims=True)
    spread: NDArray[np.float64] = np.square(from_mean).sum(axis=(1, 2))
    informed: NDArray[np.float64] = np.sqrt(spread / (n_classes - 1))
    return informed


def moments_given_truths(
    counts: NDArray[Any], prior: CrowdPrior, matrices: NDArray[Any]
) -> Moments:
    """Give the moments of every matrix and skill from counts.

    Parameters
    ----------
    counts : ndarray of shape (n_annotators, n_classes, n_classes)
    prior : CrowdPrior
    matrices : ndarray of the same shape
        One draw of the matrices, for the moments of what has none in closed form.
    """
    chunks = [_chunk_moments(counts[k : k + _CHUNK], prior) for k in range(0, len(counts), _CHUNK)]
    informed = informedness(matrices)
    cell_mean, cell_variance, skill_mean, skill_variance = (
        np.concatenate(parts) for parts in zip(*chunks, strict=True)
    )
    return Moments(
        cell_mean,
        cell_variance,
        skill_mean,
        skill_variance,
        informed_mean=informed,
        informed_variance=np.zeros_like(informed),
    )


def _chunk_moments(counts: NDArray[Any], prior: CrowdPrior) -> tuple[NDArray[Any], ...]:
    right, wrong = split_counts(counts)
    tilt = tilt_posterior(right, wrong, prior)
    first, second = _diagonal_moments(right, wrong, tilt, prior)
    cells = _cell_moments(counts, wrong, first, second, prior)
    return (*cells, *_skill_moments(right, wrong, tilt, prior))


def _diagonal_moments(
    right: NDArray[Any], wrong: NDArray[Any], tilt: NDArray[Any], prior: CrowdPrior
) -> tuple[NDArray[Any], NDArray[Any]]:
    """First and second moments of diagonals, mixed over tilts: (n_annotators, n_classes)."""
    start = prior.strength * prior.right
    total = prior.strength + right + wrong
    mean, square = tilt @ start, tilt @ np.square(start)
    first = (mean + right) / total
    second = (square + (2 * right + 1) * mean + right * (right + 1)) / (total * (total + 1))
    return first, second


def _cell_moments(
    counts: NDArray[Any],
    wrong: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    prior: CrowdPrior,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and variance of cells: a wrong one is (1 - right) times its share of the errors."""
    off = prior.errors > 0
    alpha = (prior.error_strength * prior.errors + counts) * off
    total = (prior.error_strength + wrong)[:, :, None]
    share = alpha / total
    share_square = alpha * (alpha + 1) / (total * (total + 1))
    mean = (1 - first)[:, :, None] * share
    square = (1 - 2 * first + second)[:, :, None] * share_square
    place = np.arange(counts.shape[1])
    mean[:, place, place], square[:, place, place] = first, second
    return mean, np.maximum(square - np.square(mean), 0)


def _skill_moments(
    right: NDArray[Any], wrong: NDArray[Any], tilt: NDArray[Any], prior: CrowdPrior
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and variance of the mean diagonal, (n_annotators,): rows are independent at a tilt.

    A row's mean is linear in the prior's parameter and its variance is quadratic: products of
    (annotators, classes) and (classes, tilts) in place of an array of all three.
    """
    n_classes = right.shape[1]
    start = prior.strength * prior.right.T
    total = prior.strength + right + wrong
    mean = (1 / total) @ start + (right / total).sum(axis=1, keepdims=True)
    # m (1 - m) / (total + 1) with m = (start + right) / total.
    scale = 1 / (np.square(total) * (total + 1))
    variance = (
        (scale * (total - 2 * right)) @ start
        - scale @ np.square(start)
        + (scale * right * (total - right)).sum(axis=1, keepdims=True)
    )
    mean, variance = mean / n_classes, variance / n_classes**2
    overall = (tilt * mean).sum(axis=1)
    return overall, (tilt * (variance + np.square(mean - overall[:, None]))).sum(axis=1)


def draw_matrices(
    counts: NDArray[Any], prior: CrowdPrior, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a matrix for every annotator, shape (n_annotators, n_classes, n_classes)."""
    chunks = [
        _draw_chunk(counts[k : k + _CHUNK], prior, rng) for k in range(0, len(counts), _CHUNK)
    ]
    return np.concatenate(chunks)


def _draw_chunk(counts: NDArray[Any], prior: CrowdPrior, rng: np.random.Generator) -> NDArray[Any]:
    right, wrong = split_counts(counts)
    cumulative = tilt_posterior(right, wrong, prior).cumsum(axis=1)
    tilt = (rng.random(len(counts))[:, None] >= cumulative).sum(axis=1)
    share = prior.right[tilt.clip(max=cumulative.shape[1] - 1)]
    diagonal = rng.beta(prior.strength * share + right, prior.strength * (1 - share) + wrong)
    alpha = prior.error_strength * prior.errors + counts
    matrices: NDArray[Any] = rng.standard_gamma(alpha) * (prior.errors > 0)
    matrices *= ((1 - diagonal) / np.maximum(matrices.sum(axis=2), 1e-300))[:, :, None]
    place = np.arange(counts.shape[1])
    matrices[:, place, place] = diagonal
    return matrices
