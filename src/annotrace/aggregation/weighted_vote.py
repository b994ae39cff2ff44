r"""Iterative weighted majority voting: weight annotators by agreement, vote, repeat.

As `wawa`, but until nothing changes, and with weights that are zero for a spammer and negative for
an adversary: an annotator who is correct with probability s has the weight :math:`L s - 1` with L
classes, a first-order form of the log odds.

Fast, and hard to mislead; but it learns only one number per annotator. The objective is the
log-likelihood of the labels under one coin of those skills; it is reported, not maximised.

H. Li and B. Yu, Error rate bounds and iterative weighted majority voting for crowdsourcing,
arXiv:1411.4086, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from annotrace.aggregation.base import IterativeAggregation
from annotrace.aggregation.em_model import (
    SMALLEST,
    MatrixEMModel,
    class_shares,
    is_stable,
    one_coin_matrices,
    smoothed_skill,
)
from annotrace.crowd.problem import CrowdProblem
from annotrace.parameters import Count, Positive

SMOOTHING = 0.01


def leading_classes(votes: Tensor) -> Tensor:
    """Return one for the class with the highest vote, shared where several tie.

    Parameters
    ----------
    votes : Tensor of shape (n_items, n_classes)

    Returns
    -------
    Tensor of shape (n_items, n_classes)
        Rows sum to one.
    """
    highest = (votes >= votes.amax(1, keepdim=True) - 1e-9).to(votes.dtype)
    return highest.div_(highest.sum(1, keepdim=True))


def agreement_with(problem: CrowdProblem, votes: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return how often each annotator agrees with the leading class, and the shares of classes.

    Parameters
    ----------
    problem : CrowdProblem
    votes : Tensor of shape (n_items, n_classes)
    smoothing : float
        Added to each count.

    Returns
    -------
    skill : Tensor of shape (n_annotators,)
    prior : Tensor of shape (n_classes,)
    """
    leading = problem.set_gold(leading_classes(votes))
    correct, total = problem.agreement(leading)
    skill = smoothed_skill(correct, total, problem.shape[1], smoothing)
    return skill.to(problem.dtype), class_shares(problem, leading)


def linear_weights(skill: Tensor, n_classes: int) -> Tensor:
    """Return weights of votes, zero for a spammer and negative for an adversary."""
    return n_classes * skill - 1


def weighted_votes(problem: CrowdProblem, weights: Tensor, prior: Tensor) -> Tensor:
    """Return the shares of weighted votes, shape (n_items, n_classes).

    Parameters
    ----------
    problem : CrowdProblem
    weights : Tensor of shape (n_annotators,)
    prior : Tensor of shape (n_classes,)
        Of items without labels.
    """
    votes = problem.labels.sum_votes(weights)
    # Negative votes count for all other classes.
    votes -= votes.amin(1, keepdim=True).clamp(max=0)
    total = votes.sum(1, keepdim=True)
    shares = votes.div_(total.clamp(min=SMALLEST)).masked_fill_(total <= 0, 1 / votes.shape[1])
    shares[problem.uninformed] = prior
    return problem.set_gold(shares)


class WeightedVoteModel(MatrixEMModel):
    """One skill per annotator, and votes weighted by it.

    Parameters
    ----------
    problem : CrowdProblem
    smoothing : float
    """

    is_vote = True
    skill: Tensor

    def __init__(self, problem: CrowdProblem, smoothing: float) -> None:
        super().__init__(problem)
        self.smoothing = smoothing
        half = torch.full((self.n_annotators,), 0.5, dtype=problem.dtype)
        self.register_buffer("skill", half)

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Learn how often each annotator agrees with the leading class."""
        self.skill, self.prior = agreement_with(problem, state, self.smoothing)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the shares of weighted votes and the log-likelihood of the labels."""
        log_prior = self.prior.clamp(min=SMALLEST).log()
        log_joint = self.item_log_likelihood(problem.labels).add_(log_prior)
        votes = weighted_votes(problem, self.weights(), self.prior)
        return votes, problem.e_step(log_joint)[1]

    def weights(self) -> Tensor:
        """Return the weight of each annotator's votes, shape (n_annotators,)."""
        return linear_weights(self.skill, self.n_classes)

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices of one coin per annotator."""
        return one_coin_matrices(self.skill, self.n_classes).log_()


def vote_until_stable(problem: CrowdProblem, max_iter: int = 20) -> Tensor:
    """Return weighted votes (n_items, n_classes) that change hardly any class when repeated."""
    votes = problem.votes()
    for _ in range(max_iter):
        before = votes
        skill, prior = agreement_with(problem, before, SMOOTHING)
        votes = weighted_votes(problem, linear_weights(skill, problem.shape[1]), prior)
        if is_stable(problem, before, votes):
            break
    return votes


@dataclass(kw_only=True, eq=False, repr=False)
class IterativeWeightedVote(IterativeAggregation):
    """Vote, weight annotators by agreement with the result, vote again.

    Parameters
    ----------
    smoothing : float
        Added to each count of an annotator's labels that agree or not.
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`.
    """

    smoothing: Positive = SMOOTHING
    max_iter: Count = 100

    method: ClassVar[str] = "weighted-vote"

    def _make_model(self, problem: CrowdProblem) -> WeightedVoteModel:
        return WeightedVoteModel(problem, self.smoothing)
