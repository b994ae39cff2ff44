"""Means, variances and draws of confusion matrices under `CrowdPrior`, the truths being given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.crowd_prior import CrowdPrior, split_counts, tilt_posterior

RawMoments: TypeAlias = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Moments:
    """Means and variances.

    Attributes
    ----------
    cell_mean, cell_variance : ndarray of shape (n_annotators, n_classes, n_classes)
    skill_mean, skill_variance : ndarray of shape (n_annotators,)
    informed_mean, informed_variance : ndarray of shape (n_annotators,)
        Of `informedness`.
    advantage_mean, advantage_variance : ndarray of shape (n_annotators,)
        Of `advantage`.
    """

    cell_mean: NDArray[Any]
    cell_variance: NDArray[Any]
    skill_mean: NDArray[Any]
    skill_variance: NDArray[Any]
    informed_mean: NDArray[Any]
    informed_variance: NDArray[Any]
    advantage_mean: NDArray[Any]
    advantage_variance: NDArray[Any]


class MomentSums:
    """Sums of moments over draws of the truths.

    Parameters
    ----------
    n_annotators, n_classes : int
    """

    def __init__(self, n_annotators: int, n_classes: int) -> None:
        cells = (n_annotators, n_classes, n_classes)
        self._means = [np.zeros(shape) for shape in (cells, *[n_annotators] * 3)]
        self._squared_means, self._squares = (
            [np.zeros_like(total) for total in self._means] for _ in range(2)
        )

    def add(self, who: slice, raw: RawMoments) -> None:
        """Add what `MatricesGivenTruths.raw_moments` gives for some annotators."""
        for k, (mean, square) in enumerate(zip(raw[::2], raw[1::2], strict=True)):
            self._means[k][who] += mean
            self._squares[k][who] += square
            self._squared_means[k][who] += np.square(mean)

    def moments(self, n_draws: int) -> Moments:
        """Give the moments over all draws."""
        found: list[NDArray[np.float64]] = []
        for parts in zip(self._means, self._squares, self._squared_means, strict=True):
            mean, square, squared_mean = (total / n_draws for total in parts)
            between = squared_mean - np.square(mean)
            # Rubin's rule: the mean over a few draws is itself uncertain, and their spread about
            # it is less than that about the mean over all.
            between *= (n_draws + 1) / max(n_draws - 1, 1)
            found += [mean, np.maximum(square - squared_mean + between, 0)]
        return Moments(*found)


def informedness(matrices: NDArray[Any], common: NDArray[Any]) -> NDArray[np.float64]:
    """Tell how much reports depend on the truth: 0 where all rows are alike, 1 for identity.

    The root of the mean squared distance of rows from their mean; q for a matrix of
    q I + (1 - q) / n_classes, and for any habit of guessing in place of the last term.

    Parameters
    ----------
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
    common : ndarray of shape (n_classes,)
        How common classes are, by which rows are weighed: little is known of a rare one.

    Returns
    -------
    ndarray of shape (n_annotators,)
    """
    from_mean = matrices - np.einsum("i,rij->rj", common, matrices)[:, None]
    spread = np.einsum("i,rij,rij->r", common, from_mean, from_mean)
    informed: NDArray[np.float64] = np.sqrt(spread / (1 - np.square(common).sum()))
    return informed


def advantage(matrices: NDArray[Any], common: NDArray[Any]) -> NDArray[np.float64]:
    """Tell how much oftener reports are right than if given blindly, as often each: at most 1.

    Like `informedness` it is q for q I + (1 - q) habit. It is below 0 for those who swap names,
    and does not grow with the noise in every row, as squares do.

    Parameters
    ----------
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
    common : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of shape (n_annotators,)
    """
    right = np.einsum("i,rii->r", common, matrices)
    blindly = np.einsum("i,rij,j->r", common, matrices, common)
    beyond: NDArray[np.float64] = (right - blindly) / (1 - np.square(common).sum())
    return beyond


def chunks(n_annotators: int, n_classes: int) -> Iterator[slice]:
    """Give slices of annotators whose arrays, of cells or of tilts, fit into a cache."""
    size = max(2**18 // max(n_classes**2, 61), 1)
    return (slice(k, min(k + size, n_annotators)) for k in range(0, n_annotators, size))


class SharedErrors:
    """What rows of matrices would be but for the counts: a draw that many annotators share.

    The errors of a row are weights divided by their sum, drawn from Gamma distributions, and
    Gamma(prior + count) is Gamma(prior) + Gamma(count). The first takes long to draw, and is the
    same for everybody; each is given to annotators who are thousands of places apart.

    Parameters
    ----------
    n_drawn : int
    prior : CrowdPrior
    rng : Generator
    """

    def __init__(self, n_drawn: int, prior: CrowdPrior, rng: np.random.Generator) -> None:
        shape = (n_drawn, *prior.errors.shape)
        self._weights = rng.standard_gamma(prior.error_strength * prior.errors, shape)

    @staticmethod
    def enough(n_classes: int) -> int:
        """Say how many must be drawn: of fewer annotators, each has its own."""
        return max(2**20 // n_classes**2, 2048)

    def take(self, who: slice) -> NDArray[np.float64]:
        """Give the weights of some annotators, shape (n_annotators, n_classes, n_classes)."""
        weights: NDArray[np.float64] = self._weights[
            np.arange(who.start, who.stop) % len(self._weights)
        ]
        return weights


class MatricesGivenTruths:
    """The matrices of some annotators, as far as counts tell of them.

    Parameters
    ----------
    counts : ndarray of shape (n_annotators, n_classes, n_classes)
    prior : CrowdPrior
    """

    def __init__(self, counts: NDArray[Any], prior: CrowdPrior) -> None:
        self.counts, self.prior = counts, prior
        self.right, self.wrong = split_counts(counts)
        self.tilt = tilt_posterior(self.right, self.wrong, prior)

    def draw(self, rng: np.random.Generator, shared: NDArray[Any] | None = None) -> NDArray[Any]:
        """Draw a matrix for every annotator, shape (n_annotators, n_classes, n_classes).

        Parameters
        ----------
        rng : Generator
        shared : ndarray of the same shape, optional
            Of `SharedErrors`, used up; drawn for each annotator unless given.
        """
        prior, matrices = self.prior, shared
        cumulative = self.tilt.cumsum(axis=1)
        tilt = np.count_nonzero(rng.random(len(self.tilt))[:, None] >= cumulative, axis=1)
        share = prior.strength * prior.right[tilt.clip(max=cumulative.shape[1] - 1)]
        diagonal = rng.beta(share + self.right, prior.strength - share + self.wrong)
        if matrices is None:
            matrices = rng.standard_gamma(prior.error_strength * prior.errors + self.counts)
        else:
            wrong = self.counts * (prior.errors > 0)
            counted = np.flatnonzero(wrong)
            matrices.ravel()[counted] += rng.standard_gamma(wrong.ravel()[counted])
        place = np.arange(matrices.shape[1])
        matrices[:, place, place] = 0
        total = np.maximum(np.einsum("rij->ri", matrices), 1e-300)
        matrices *= ((1 - diagonal) / total)[:, :, None]
        matrices[:, place, place] = diagonal
        return np.asarray(matrices)

    def raw_moments(self, matrices: NDArray[Any], common: NDArray[Any]) -> RawMoments:
        """Give first and second moments about 0 of cells, skills, informedness and advantage.

        Parameters
        ----------
        matrices : ndarray of shape (n_annotators, n_classes, n_classes)
            A draw, for the moments of what has none in closed form.
        common : ndarray of shape (n_classes,)
            How common classes are.
        """
        drawn = informedness(matrices, common), advantage(matrices, common)
        squared = (part for own in drawn for part in (own, np.square(own)))
        return (*self._cells(), *self._skills(), *squared)

    def _cells(self) -> RawMoments:
        """Moments of cells: a wrong one is (1 - right) times its share of the errors."""
        prior, (first, second) = self.prior, self._diagonals()
        alpha = prior.error_strength * prior.errors + self.counts
        total = prior.error_strength + self.wrong
        mean = ((1 - first) / total)[:, :, None] * alpha
        square = alpha + 1
        square *= alpha
        square *= ((1 - 2 * first + second) / (total * (total + 1)))[:, :, None]
        place = np.arange(alpha.shape[1])
        mean[:, place, place], square[:, place, place] = first, second
        return mean, square

    def _diagonals(self) -> RawMoments:
        """Moments of diagonals, mixed over tilts: (n_annotators, n_classes)."""
        right, start = self.right, self.prior.strength * self.prior.right
        total = self.prior.strength + right + self.wrong
        mean, square = self.tilt @ start, self.tilt @ np.square(start)
        first = (mean + right) / total
        second = (square + (2 * right + 1) * mean + right * (right + 1)) / (total * (total + 1))
        return first, second

    def _skills(self) -> RawMoments:
        """Moments of the mean diagonal, (n_annotators,): rows are independent at a tilt.

        A row's mean is linear in the prior's parameter and its variance is quadratic: products of
        (annotators, classes) and (classes, tilts) in place of an array of all three.
        """
        right, n_classes = self.right, self.right.shape[1]
        start = self.prior.strength * self.prior.right.T
        total = self.prior.strength + right + self.wrong
        mean = (1 / total) @ start + (right / total).sum(axis=1, keepdims=True)
        # m (1 - m) / (total + 1) with m = (start + right) / total.
        scale = 1 / (np.square(total) * (total + 1))
        variance = (
            (scale * (total - 2 * right)) @ start
            - scale @ np.square(start)
            + (scale * right * (total - right)).sum(axis=1, keepdims=True)
        )
        mean, variance = mean / n_classes, variance / n_classes**2
        first = np.einsum("rt,rt->r", self.tilt, mean)
        return first, np.einsum("rt,rt->r", self.tilt, variance + np.square(mean))
