r"""GLAD: able annotators, easy items.

Annotator r has an ability :math:`a_r` and item i an ease :math:`e^{b_i}`; a label is correct with
probability :math:`\sigma(a_r e^{b_i})`, and wrong labels are spread evenly. EM with normal priors
of mean 1 and variance 1 on a and b, as in the paper; each M-step takes a few steps on annotators,
then items, and keeps a step only where it gains, so that no iteration lowers the objective.

Use it where items differ in difficulty and classes are alike. It has no confusion matrix: an
annotator who confuses two classes only has a low ability.

J. Whitehill, T. Wu, J. Bergsma, J. Movellan and P. Ruvolo, Whose vote should count more: optimal
integration of labels from labelers of unknown expertise, NIPS 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from annotrace.aggregation.base import IterativeAggregation
from annotrace.aggregation.em_model import MatrixEMModel, one_coin_matrices
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.problem import CrowdProblem
from annotrace.parameters import Count

# Mean of the normal priors on ability and on log ease.
TYPICAL = 1.0

Terms: TypeAlias = tuple[Tensor, Tensor, Tensor]


def expected_value(margin: Tensor, correct: Tensor) -> Tensor:
    """Return the expected log-likelihood of labels that are correct with a probability."""
    return logsigmoid(-margin) + correct * margin


def curvature_bound(margin: Tensor) -> Tensor:
    """Bound the curvature of log sigmoid by that of the parabola that touches it at +-margin.

    Fisher's curvature vanishes where a label is all but certain, and a step by it overshoots so far
    that no later step gains: an ability with the wrong sign would keep it.
    """
    return torch.where(margin.abs() < 1e-3, 0.25, (torch.sigmoid(margin) - 0.5) / margin)


def scoring_step(values: Tensor, owner: Tensor, terms: Callable[[Tensor], Terms]) -> Tensor:
    """Take one step on each value by slope and bounded curvature, and keep it where it gains.

    Parameters
    ----------
    values : Tensor of shape (n,)
        Abilities or log eases, with a normal prior of mean `TYPICAL` and variance 1.
    owner : Tensor of shape (n_terms,)
        The value that each term belongs to.
    terms : callable
        Returns the objective, slope and curvature of each term at some values.
    """

    def total(term: Tensor) -> Tensor:
        return torch.zeros_like(values).index_add_(0, owner, term)

    gain, slope, curvature = map(total, terms(values))
    away = values - TYPICAL
    proposed = values + (slope - away) / (curvature + 1)
    proposed_gain = total(terms(proposed)[0]) - (proposed - TYPICAL).square() / 2
    return torch.where(proposed_gain > gain - away.square() / 2, proposed, values)


class GLADModel(MatrixEMModel):
    """One ability per annotator and one ease per item.

    Parameters
    ----------
    problem : CrowdProblem
    n_steps : int
        Steps on annotators and items in each M-step.
    """

    ability: Tensor
    log_ease: Tensor

    def __init__(self, problem: CrowdProblem, n_steps: int) -> None:
        super().__init__(problem)
        self.n_steps = n_steps
        sizes = self.n_annotators, problem.table.n_items
        for name, size in zip(("ability", "log_ease"), sizes, strict=True):
            self.register_buffer(name, torch.full((size,), TYPICAL, dtype=problem.dtype))

    def initial_state(self, problem: CrowdProblem) -> Tensor:
        """Return the posterior under typical abilities and eases."""
        return self.e_step(problem)[0]

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Improve abilities and eases."""
        labels = problem.labels
        correct = state[labels.row, labels.label]
        for _ in range(self.n_steps):
            self._update_abilities(problem, correct)
            self._update_ease(labels, correct)

    def _update_abilities(self, problem: CrowdProblem, correct: Tensor) -> None:
        labels, often = problem.labels, torch.ones((), dtype=problem.dtype)
        annotator, ease = labels.annotator, self.log_ease.exp()[labels.row]
        if problem.prior_counts is not None:
            everyone, known_correct, known_often = _earlier_labels(problem.prior_counts)
            often = torch.cat([torch.ones_like(correct), known_often])
            annotator = torch.cat([annotator, everyone.to(annotator.dtype)])
            ease = torch.cat([ease, torch.full_like(known_correct, math.exp(TYPICAL))])
            correct = torch.cat([correct, known_correct])

        def terms(ability: Tensor) -> Terms:
            margin = ability[annotator] * ease
            value = expected_value(margin, correct)
            slope = (correct - torch.sigmoid(margin)) * ease
            return often * value, often * slope, often * curvature_bound(margin) * ease**2

        self.ability = scoring_step(self.ability, annotator, terms)

    def _update_ease(self, labels: LabelIndex, correct: Tensor) -> None:
        ability = self.ability[labels.annotator]

        def terms(log_ease: Tensor) -> Terms:
            margin = ability * log_ease.exp()[labels.row]
            value = expected_value(margin, correct)
            slope = (correct - torch.sigmoid(margin)) * margin
            return value, slope, curvature_bound(margin) * margin**2

        self.log_ease = scoring_step(self.log_ease, labels.row, terms)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the posterior, and the log-likelihood plus the log priors."""
        log_joint = self.item_log_likelihood(problem.labels).add_(self.prior.log())
        posterior, log_evidence = problem.e_step(log_joint)
        return posterior, log_evidence + self._log_density(problem)

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes)."""
        log_errors = math.log(max(self.n_classes - 1, 1))
        margin = self.ability[labels.annotator] * self.log_ease.exp()[labels.item][labels.row]
        cell = labels.row.long() * self.n_classes + labels.label
        correct = margin.new_zeros(labels.n_rows * self.n_classes)
        correct.index_add_(0, cell, margin + log_errors)
        wrong = margin.new_zeros(labels.n_rows)
        wrong.index_add_(0, labels.row, logsigmoid(-margin) - log_errors)
        return correct.view(-1, self.n_classes) + wrong[:, None]

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator, item), shape (n_labels, n_classes)."""
        ease = self.log_ease.exp()
        margin = self.ability[annotator] * (ease.median() if item is None else ease[item])
        matrices = one_coin_matrices(torch.sigmoid(margin), self.n_classes)
        return matrices[torch.arange(len(label)), :, label].log()

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices on an item of median ease."""
        skill = torch.sigmoid(self.ability * self.log_ease.exp().median())
        return one_coin_matrices(skill, self.n_classes).log()

    def learned(self) -> dict[str, Any]:
        """Return what the aggregation shows of the model, by attribute name."""
        return {"ability_": self.ability.numpy(), "ease_": self.log_ease.exp().numpy()}

    def _log_density(self, problem: CrowdProblem) -> float:
        away = (self.ability - TYPICAL).square().sum() + (self.log_ease - TYPICAL).square().sum()
        density = -away.double() / 2
        if problem.prior_counts is not None:
            _, correct, often = _earlier_labels(problem.prior_counts)
            density += (often * expected_value(self.ability * math.exp(TYPICAL), correct)).sum()
        return float(density)


@dataclass(kw_only=True, eq=False, repr=False)
class GLAD(IterativeAggregation):
    """Annotators of different ability, items of different ease; classes equally likely.

    Parameters
    ----------
    n_steps : int
        Steps on annotators and items in each M-step.
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`.

    Attributes
    ----------
    ability_ : ndarray of shape (n_annotators,)
        0 is guessing, below 0 adversarial.
    ease_ : ndarray of shape (n_items,)
        1 / difficulty; near 0 an item is hard for everyone.
    """

    n_steps: Count = 3
    max_iter: Count = 100

    method: ClassVar[str] = "glad"
    adds_up: ClassVar[bool] = False

    def _make_model(self, problem: CrowdProblem) -> GLADModel:
        return GLADModel(problem, self.n_steps)


def _earlier_labels(prior_counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return prior counts as labels of typical items: annotators, accuracy and number."""
    often = prior_counts.sum((1, 2))
    correct = prior_counts.diagonal(dim1=1, dim2=2).sum(1) / often.clamp(min=1e-12)
    return torch.arange(len(prior_counts)), correct, often
