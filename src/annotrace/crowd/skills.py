"""What is known about each annotator: counts, confusion matrix and skill, with intervals.

This is the one definition of skill: the mean diagonal of the posterior mean of the confusion
matrix under the prior of `annotrace.crowd.ability`, which shrinks annotators with few labels
towards the pool. `skill_`, `annotators_`, the report, the csv files and the allocation all show it.

True classes are uncertain too. A few rounds of EM alternate between the posterior of the items
under the shrunken matrices and the matrices given that posterior, so that a method that trusts an
annotator with five labels too much does not confirm itself. Everything is conjugate: no sampling.

Accuracy, the share of an annotator's labels that are correct, is the diagonal weighted by the
classes that the annotator has labelled. Where annotators share errors, the posterior of the items
is wrong together with them, and no number of labels makes skills and accuracies certain: their
intervals have a part that grows with the estimated correlation of errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri

from annotrace.crowd.ability import SLIPS, AbilityModel, LabelCounts
from annotrace.crowd.annotator_model import FixedMatrices
from annotrace.crowd.beta_interval import beta_interval
from annotrace.crowd.dependence import ErrorDependence, predict_dependence
from annotrace.crowd.em_threads import measured_threads
from annotrace.crowd.gold_accuracy import AccuracyEstimate, gold_accuracy
from annotrace.crowd.problem import CrowdProblem
from annotrace.progress import report_stage

if TYPE_CHECKING:
    from annotrace.crowd.result import CrowdResult

Array = NDArray[np.float64]

# Error of skills on 40 simulated crowds, from labels alone by two aggregations, after 0, 1, 2, 4
# and 6 rounds: .0756, .0729, .0718, .0711, .0709.
N_ROUNDS = 4
SMALLEST_PRIOR = 1e-9
# Standard deviation of the error that shared errors leave in a skill or an accuracy, divided by the
# correlation of errors. On 14 public crowds 90 % intervals of the accuracy cover 51 % with 0, 84 %
# with .25, 87 % with .3 and 90 % with .35, in the mean over crowds.
SHARED_ERROR = 0.3


def diagonals(confusion: NDArray[Any]) -> Array:
    """Return the accuracy in each class, shape (n_annotators, n_classes)."""
    accuracies: Array = np.einsum("rkk->rk", confusion)
    return accuracies


def skills(confusion: NDArray[Any]) -> Array:
    """Return the mean diagonal of each confusion matrix, shape (n_annotators,).

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Known matrices, for example; `skill_` is that of the matrices of `AnnotatorPosterior`.
    """
    mean_diagonal: Array = diagonals(confusion).mean(axis=1)
    return mean_diagonal


@dataclass(frozen=True, eq=False)
class AnnotatorPosterior:
    """The posterior of all annotators' confusion matrices.

    Attributes
    ----------
    counts : ndarray of shape (n_annotators, n_classes, n_classes)
        Expected labels behind each cell, [annotator, true, reported]: gold items are certain,
        counts of earlier labels are included, and from labels alone the only label of an item
        counts for nothing.
    mean : ndarray of shape (n_annotators, n_classes, n_classes)
        Posterior mean of the confusion matrices; an annotator without labels has the pool's.
    item_posterior : ndarray of shape (n_items, n_classes)
        The posterior of the true classes under `mean`.
    dependence : ErrorDependence
        How far annotators share errors, estimated under `mean`.
    known_share : ndarray of shape (n_annotators,)
        Share of `counts` that is of gold items and of earlier labels of known items.
    by_gold : AccuracyEstimate or None
        The accuracies by gold items, if they have chosen the posterior.
    """

    counts: Array
    mean: Array
    item_posterior: NDArray[Any]
    diagonal_variance: Array  # (n_annotators, n_classes), given the ability
    diagonal_slope: Array  # (n_annotators, n_classes), by ability
    ability_variance: Array  # (n_annotators,)
    error_counts: Array  # (n_annotators, n_classes), effective
    dependence: ErrorDependence
    known_share: Array
    by_gold: AccuracyEstimate | None = None

    @cached_property
    def skill(self) -> Array:
        """The mean diagonal of `mean`, shape (n_annotators,)."""
        return skills(self.mean)

    @cached_property
    def skill_variance(self) -> Array:
        """Posterior variance of the skill if errors were independent, shape (n_annotators,)."""
        n_classes = self.mean.shape[1]
        return self._variance_of_sum(np.full(n_classes, 1 / n_classes)[None])

    def skill_interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the lower and upper ends of the skill's interval, each (n_annotators,)."""
        return self._widen(self.skill, self.skill_variance, level)

    @cached_property
    def accuracy(self) -> Array:
        """The share of each annotator's labels that are correct, shape (n_annotators,)."""
        if self.by_gold is not None:
            return self.by_gold.value
        accuracy: Array = (self._class_shares * diagonals(self.mean)).sum(axis=1)
        return accuracy

    @cached_property
    def accuracy_variance(self) -> Array:
        """Posterior variance of the accuracy if errors were independent, (n_annotators,)."""
        return self._variance_of_sum(self._class_shares)

    def accuracy_interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the lower and upper ends of the accuracy's interval, each (n_annotators,)."""
        if self.by_gold is not None:
            return self.by_gold.interval(level)
        return self._widen(self.accuracy, self.accuracy_variance, level)

    @property
    def shared_error(self) -> Array:
        """Standard error that shared errors leave, however many labels, shape (n_annotators,).

        Labels of items of known truth are free of it.
        """
        return SHARED_ERROR * self.dependence.expected * (1 - self.known_share)

    def _widen(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """Return intervals of a mean and a variance that allow for shared errors."""
        low, high = beta_interval(mean, variance, level)
        # A Beta distribution with all of the variance would have its mass at 0 and 1.
        bar = ndtri((1 + level) / 2) * self.shared_error
        low, high = mean - np.hypot(mean - low, bar), mean + np.hypot(high - mean, bar)
        return np.maximum(low, 0), np.minimum(high, 1)

    @cached_property
    def _class_shares(self) -> Array:
        """Shares of the classes among the items that each annotator labelled, as in `counts`."""
        labelled = self.counts.sum(axis=2)
        all_labelled = labelled.sum(axis=0) + SMALLEST_PRIOR
        # The crowd's shares count as one label, for annotators who have none.
        shares: Array = labelled + all_labelled / all_labelled.sum()
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def cell_interval(
        self, level: float = 0.9, annotators: NDArray[Any] | None = None
    ) -> tuple[Array, Array]:
        """Return the intervals of all cells, two arrays (n_annotators, n_classes, n_classes).

        Parameters
        ----------
        level : float
        annotators : ndarray of int, optional
            All annotators by default.
        """
        who = slice(None) if annotators is None else annotators
        return beta_interval(self.mean[who], self.cell_variance(who), level)

    def diagonal_interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the intervals of the accuracies in each class, each (n_annotators, n_classes)."""
        return beta_interval(diagonals(self.mean), self._diagonal_total, level)

    def chance_corrected_interval(
        self, class_shares: Array, level: float = 0.9
    ) -> tuple[Array, Array]:
        """Return the interval of the chance-corrected accuracy, each (n_annotators,).

        How much more often an annotator is correct than by answering independently of the item with
        the class shares, divided by its maximum: 1 for perfect annotators, 0 for spammers, below 0
        for those who confuse classes systematically.

        Parameters
        ----------
        class_shares : ndarray of shape (n_classes,)
        level : float
        """
        mean, variance = self._chance_corrected(class_shares)
        low, high = beta_interval((1 + mean) / 2, variance / 4, level)
        return 2 * low - 1, 2 * high - 1

    def _chance_corrected(self, shares: Array) -> tuple[Array, Array]:
        """Return mean and variance; every row is linear in its diagonal, given the errors."""
        largest = max(1 - float(np.square(shares).sum()), 1e-9)
        diagonal = diagonals(self.mean)
        wrong = np.maximum(1 - diagonal, 1e-12)
        by_chance = (self.mean @ shares - shares * diagonal) / wrong
        mean = (shares * (diagonal - self.mean @ shares)).sum(axis=1) / largest
        slope = shares * (1 - shares + by_chance) / largest
        squares = (self.mean @ np.square(shares) - np.square(shares) * diagonal) / wrong
        of_errors = np.maximum(squares - np.square(by_chance), 0) / (self.error_counts + 1)
        of_errors = np.square(shares * wrong / largest) * of_errors
        return mean, self._variance_of_sum(slope) + of_errors.sum(axis=1)

    def _variance_of_sum(self, weights: Array) -> Array:
        """Variance of a weighted sum of an annotator's diagonal, weights (..., n_classes)."""
        own = (np.square(weights) * self.diagonal_variance).sum(axis=1)
        shared = np.square((weights * self.diagonal_slope).sum(axis=1)) * self.ability_variance
        variance: Array = own + shared
        return variance

    @cached_property
    def _diagonal_total(self) -> Array:
        shared = np.square(self.diagonal_slope) * self.ability_variance[:, None]
        total: Array = self.diagonal_variance + shared
        return total

    def cell_variance(self, annotators: NDArray[Any] | slice) -> Array:
        """Return the variances of cells, shape (n_annotators, n_classes, n_classes)."""
        # A wrong cell is (1 - diagonal) times its share of the errors.
        who = annotators
        mean, of_diagonal = self.mean[who], self._diagonal_total[who]
        wrong = np.maximum(1 - diagonals(mean), 1e-12)[:, :, None]
        share = mean / wrong
        of_share = share * (1 - share) / (self.error_counts[who] + 1)[:, :, None]
        variance: Array = np.square(share) * of_diagonal[:, :, None]
        variance += of_share * (np.square(wrong) + of_diagonal[:, :, None])
        place = np.arange(mean.shape[1])
        variance[:, place, place] = of_diagonal
        return variance


def annotator_posterior(result: CrowdResult) -> AnnotatorPosterior:
    """Compute the posterior of all annotators' confusion matrices from a result.

    Examples
    --------
    >>> from annotrace.crowd.result import CrowdResult
    >>> from annotrace.labels import LabelTable
    >>> item, pair = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    >>> table = LabelTable.from_codes(item, annotator=pair, label=pair)
    >>> known = CrowdResult(
    ...     table, np.tile([1.0, 0.0], (40, 1)), np.zeros(40, int), None,
    ...     prior=np.array([0.5, 0.5]), gold=np.zeros(40, np.int32),
    ... )
    >>> annotator_posterior(known).counts[:, 0]
    array([[40.,  0.],
           [ 0., 40.]])
    """
    crowd = _Crowd(result)
    with measured_threads(crowd.problem):
        return _estimate(crowd)


def _estimate(crowd: _Crowd) -> AnnotatorPosterior:
    result = crowd.result
    labels = crowd.count(crowd.start())
    model = AbilityModel.initial(*labels.total.shape).fit(labels)
    # A posterior that gold items have chosen corrects the matrices, not the other way round.
    for place in range(N_ROUNDS if result.held_out is None else 0):
        report_stage("Judging annotators, round", place, N_ROUNDS)
        labels = crowd.count(crowd.posterior(mean_matrices(labels, model)))
        # Under shrunken matrices annotators look alike: strengths fitted to these counts would grow
        # from round to round. On 40 simulated crowds 90 % intervals of cells cover .83 with the
        # first strengths and .74 with refitted ones, after Dawid-Skene; skills are the same.
        model = model.fit_abilities(labels)
    found = crowd.describe(labels, model, mean_matrices(labels, model))
    if result.model_weight == 1:
        return found
    # Shared errors show in what the model alone would make of the labels.
    alone = annotator_posterior(replace(result, model_weight=1.0))
    return replace(found, dependence=alone.dependence)


class _Crowd:
    """The labels of a result, for repeated E-steps and counts."""

    def __init__(self, result: CrowdResult) -> None:
        self.result = result
        self.problem = CrowdProblem(result.table, result.gold, result.prior_counts)
        self.log_prior = self.problem.tensor(np.log(np.maximum(result.prior, SMALLEST_PRIOR)))
        self.counted = self.problem.tensor(result.is_counted[:, None])

    def start(self) -> torch.Tensor:
        """Return the posterior of the fit; shares of votes become the estimated classes."""
        certain = np.eye(self.problem.shape[1])[self.result.estimate]
        return self.problem.tensor(certain if self.result.is_vote else self.result.posterior)

    def posterior(self, matrices: Array) -> torch.Tensor:
        """Compute the posterior of the items under confusion matrices (the E-step)."""
        model = FixedMatrices(self.problem.tensor(matrices))
        joint = model.item_log_likelihood(self.problem.labels).add_(self.log_prior)
        by_model = self.problem.e_step(joint)[0]
        if self.result.model_weight == 1:
            return by_model
        return self.start().lerp(by_model, self.result.model_weight)

    def count(self, posterior: torch.Tensor) -> LabelCounts:
        """Count expected labels, those of earlier labels included (the M-step's sum)."""
        weights = posterior * self.counted
        counts, squares = (self.problem.counts(w).double().numpy() for w in (weights, weights**2))
        return LabelCounts(counts, squares)

    def known_share(self, labels: LabelCounts) -> Array:
        """Return the share of each annotator's labels that are of items of known truth."""
        table, earlier = self.result.table, self.result.prior_counts
        is_gold = self.result.gold >= 0
        known = np.zeros(table.n_annotators, np.int64)
        if is_gold.any():
            known += np.bincount(table.annotator[is_gold[table.item]], minlength=len(known))
        n_earlier = 0 if earlier is None else earlier.sum(axis=(1, 2))
        total = labels.counts.sum(axis=(1, 2))
        share: Array = np.clip((known + n_earlier) / np.maximum(total, 1e-9), 0, 1)
        return share

    def describe(self, labels: LabelCounts, model: AbilityModel, mean: Array) -> AnnotatorPosterior:
        """Return the posterior of matrices with a given mean: variances and shared errors."""
        share, diagonal = labels.effective_share(), diagonals(mean)
        total = model.strength + 2 * SLIPS + share * labels.total
        expected = labels.expected_accuracy(model.ability)
        posterior = self.posterior(mean).numpy()
        return AnnotatorPosterior(
            counts=labels.counts,
            mean=mean,
            item_posterior=posterior,
            diagonal_variance=diagonal * (1 - diagonal) / (total + 1),
            diagonal_slope=model.strength / total * expected * (1 - expected),
            ability_variance=model.variance,
            error_counts=model.error_strength + share * labels.wrong,
            dependence=predict_dependence(self.result.table, mean, posterior, self.result.gold),
            known_share=self.known_share(labels),
            by_gold=self.accuracy_by_gold(),
        )

    def accuracy_by_gold(self) -> AccuracyEstimate | None:
        """Return accuracies by gold items, if they were predicted without their class."""
        result = self.result
        if result.held_out is None:
            return None
        return gold_accuracy(result.table, result.gold, result.held_out)


def mean_matrices(labels: LabelCounts, model: AbilityModel) -> Array:
    """Return the posterior mean of the matrices, shape (n_annotators, n_classes, n_classes)."""
    expected = labels.expected_accuracy(model.ability)
    diagonal = model.strength * expected + SLIPS + labels.right
    diagonal /= model.strength + 2 * SLIPS + labels.total
    mean = labels.counts + model.error_strength * model.errors
    mean *= ((1 - diagonal) / (labels.wrong + model.error_strength))[:, :, None]
    place = np.arange(mean.shape[1])
    mean[:, place, place] = diagonal
    return mean
