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
    one_coin_skill,
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
        leading = problem.set_gold(leading_classes(state))
        self.skill = one_coin_skill(problem.counts(leading), self.smoothing)
        self.prior = class_shares(problem, leading)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the shares of weighted votes and the log-likelihood of the labels."""
        log_prior = self.prior.clamp(min=SMALLEST).log()
        log_joint = self.item_log_likelihood(problem.labels).add_(log_prior)
        return self.vote(problem), problem.e_step(log_joint)[1]

    def vote(self, problem: CrowdProblem) -> Tensor:
        """Return the shares of weighted votes, shape (n_items, n_classes)."""
        same = torch.eye(self.n_classes, dtype=problem.dtype)
        votes = problem.labels.sum_matrices(self.weights()[:, None, None] * same)
        # Negative votes count for all other classes.
        votes -= votes.amin(1, keepdim=True).clamp(max=0)
        total = votes.sum(1, keepdim=True)
        shares = votes.div_(total.clamp(min=SMALLEST)).masked_fill_(total <= 0, 1 / self.n_classes)
        shares[problem.uninformed] = self.prior
        return problem.set_gold(shares)

    def weights(self) -> Tensor:
        """Return the weight of each annotator's votes, shape (n_annotators,)."""
        return self.n_classes * self.skill - 1

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices of one coin per annotator."""
        return one_coin_matrices(self.skill, self.n_classes).log_()


def vote_until_stable(problem: CrowdProblem, max_iter: int = 20) -> Tensor:
    """Return weighted votes (n_items, n_classes) that change hardly any class when repeated."""
    model, votes = WeightedVoteModel(problem, SMOOTHING), problem.votes()
    for _ in range(max_iter):
        before = votes
        model.m_step(problem, before)
        votes = model.vote(problem)
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
