r"""GLAD: able annotators, easy items.

Annotator r has an ability :math:`a_r` and item i an ease :math:`e^{b_i}`; a label is right with
probability :math:`\sigma(a_r e^{b_i})`, and wrong labels are spread evenly. EM with normal priors
of mean 1 and variance 1 on a and b, as in the paper; in the M-step a few sweeps over
annotators, then items, each step kept only where it gains, so that no iteration loses.

Use it where items differ in difficulty and classes are alike. It has no confusion matrix: an
annotator who mixes two classes up is merely of little ability.

J. Whitehill, T. Wu, J. Bergsma, J. Movellan and P. Ruvolo, Whose vote should count more: optimal
integration of labels from labelers of unknown expertise, NIPS 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.dawid_skene import one_coin_matrices
from annotrace.aggregation.evidence import Evidence
from annotrace.parameters import Count, Number, Seed

# Mean of the normal priors on ability and on log ease.
TYPICAL = 1.0

Terms: TypeAlias = tuple[Tensor, Tensor, Tensor]


def label_value(margin: Tensor, right: Tensor) -> Tensor:
    """Give the expected log likelihood of labels, right with probability `right`; (n_labels,)."""
    return logsigmoid(-margin) + right * margin


def curvature_bound(margin: Tensor) -> Tensor:
    """Bound the curvature of log sigmoid by that of the parabola that touches it at +-margin.

    Fisher's curvature vanishes where a label is all but certain, and a step by it overshoots so far
    that no later step gains: an ability once thrown to the wrong side would stay there.
    """
    return torch.where(margin.abs() < 1e-3, 0.25, (torch.sigmoid(margin) - 0.5) / margin)


def scoring_step(values: Tensor, owner: Tensor, terms: Callable[[Tensor], Terms]) -> Tensor:
    """Take one step on each value by slope and bounded curvature, and keep it where it gains.

    Parameters
    ----------
    values : Tensor of shape (n,)
        Abilities or log eases, with a normal prior of mean `TYPICAL` and variance 1.
    owner : Tensor of shape (n_terms,), int64
        The value that each term belongs to.
    terms : callable
        Gives the objective, slope and curvature of each term at some values.
    """

    def add_up(term: Tensor) -> Tensor:
        return torch.zeros_like(values).index_add_(0, owner, term)

    gain, slope, curvature = map(add_up, terms(values))
    away = values - TYPICAL
    proposed = values + (slope - away) / (curvature + 1)
    proposed_gain = add_up(terms(proposed)[0]) - (proposed - TYPICAL).square() / 2
    return torch.where(proposed_gain > gain - away.square() / 2, proposed, values)


class GLAD(Aggregation):
    """Annotators of different ability, items of different ease; classes equally likely.

    Parameters
    ----------
    sweeps : int
        Steps over annotators and items in each M-step.
    max_iter, tol, warm_iter, random_state
        As in `Aggregation`.

    Attributes
    ----------
    ability_ : ndarray of shape (n_annotators,)
        0 is guessing, below 0 adversarial.
    ease_ : ndarray of shape (n_items,)
        1 / difficulty; near 0 an item is hard for everyone.
    """

    ability_: NDArray[Any]
    ease_: NDArray[Any]

    def __init__(
        self,
        *,
        sweeps: Count = 3,
        max_iter: Count = 100,
        tol: Number = 1e-5,
        warm_iter: Count = 10,
        random_state: Seed = 0,
    ) -> None:
        super().__init__(max_iter=max_iter, tol=tol, warm_iter=warm_iter, random_state=random_state)
        self.sweeps = sweeps

    def _start(self, evidence: Evidence) -> Tensor:
        table = evidence.table
        self._item = torch.from_numpy(table.item.astype(np.int64))
        self._annotator = torch.from_numpy(table.annotator.astype(np.int64))
        self._cell = self._item * table.n_classes + torch.from_numpy(table.label.astype(np.int64))
        self._ability = torch.full((table.n_annotators,), TYPICAL, dtype=evidence.dtype)
        self._log_ease = torch.full((table.n_items,), TYPICAL, dtype=evidence.dtype)
        return self._infer(evidence)[0]

    def _keep(self, before: GLAD) -> None:
        self._ability[: len(before._ability)] = before._ability
        self._log_ease[: len(before._log_ease)] = before._log_ease

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        right = state.flatten()[self._cell]
        for _ in range(self.sweeps):
            self._learn_abilities(evidence, right)
            self._learn_ease(right)

    def _learn_abilities(self, evidence: Evidence, right: Tensor) -> None:
        annotator, ease = self._annotator, self._log_ease.exp()[self._item]
        often = torch.ones((), dtype=evidence.dtype)
        if evidence.past is not None:
            everyone, past_right, past_often = _past_labels(evidence.past)
            annotator = torch.cat([annotator, everyone])
            ease = torch.cat([ease, torch.full_like(past_right, math.exp(TYPICAL))])
            right = torch.cat([right, past_right])
            often = torch.cat([torch.ones_like(self._cell), past_often])

        def terms(ability: Tensor) -> Terms:
            margin = ability[annotator] * ease
            chance = torch.sigmoid(margin)
            value, slope = label_value(margin, right), (right - chance) * ease
            return often * value, often * slope, often * curvature_bound(margin) * ease**2

        self._ability = scoring_step(self._ability, annotator, terms)

    def _learn_ease(self, right: Tensor) -> None:
        ability = self._ability[self._annotator]

        def terms(log_ease: Tensor) -> Terms:
            margin = ability * log_ease.exp()[self._item]
            chance = torch.sigmoid(margin)
            value, slope = label_value(margin, right), (right - chance) * margin
            return value, slope, curvature_bound(margin) * margin**2

        self._log_ease = scoring_step(self._log_ease, self._item, terms)

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        n = evidence.shape[1]
        margin = self._ability[self._annotator] * self._log_ease.exp()[self._item]
        wrong = logsigmoid(-margin) - math.log(max(n - 1, 1))
        scores = margin.new_zeros(evidence.table.n_items * n)
        scores.index_add_(0, self._cell, margin + math.log(max(n - 1, 1)))
        everywhere = torch.zeros_like(self._log_ease).index_add_(0, self._item, wrong)
        scores = scores.view(-1, n) + (everywhere - math.log(n))[:, None]
        posterior, log_likelihood = evidence.normalise(scores)
        return posterior, log_likelihood + self._log_density(evidence)

    def _log_density(self, evidence: Evidence) -> float:
        away = (self._ability - TYPICAL).square().sum() + (self._log_ease - TYPICAL).square().sum()
        density = -away.double() / 2
        if evidence.past is not None:
            _, right, often = _past_labels(evidence.past)
            density += (often * label_value(self._ability * math.exp(TYPICAL), right)).sum()
        return float(density)

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        n = evidence.shape[1]
        self.ability_, self.ease_ = self._ability.numpy(), self._log_ease.exp().numpy()
        skill = torch.sigmoid(self._ability * self._log_ease.exp().median())
        return one_coin_matrices(skill, n), torch.full_like(skill[:1], 1 / n).expand(n)


def _past_labels(past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Read past counts as labels of typical items: whose, how often right, how many."""
    often = past.sum((1, 2))
    right = past.diagonal(dim1=1, dim2=2).sum(1) / often.clamp(min=1e-12)
    return torch.arange(len(past)), right, often
