r"""Iterative weighted majority voting: weigh annotators by agreement, vote, weigh again.

*Wawa* (worker agreement with aggregate): take majority votes, weigh each annotator by the share
of their labels that agree, and vote again. *Iterative weighted majority voting* goes on, with
weights that are zero for a guesser and below zero for someone worse: an annotator right with
probability s weighs :math:`L s - 1` with L classes, a first-order form of the log odds.

Fast, and hard to lead astray; but what is learned is one number an annotator. The objective is
the log likelihood of the labels under one coin of those skills; it is told, not maximised.

H. Li and B. Yu, Error rate bounds and iterative weighted majority voting for crowdsourcing,
arXiv:1411.4086, 2014. Wawa is the method of Appen's (then CrowdFlower's) platform.
"""

from __future__ import annotations

import torch
from torch import Tensor

from annotrace.aggregation.base import Aggregation, counts_with_past
from annotrace.aggregation.dawid_skene import (
    RARE,
    estimate_prior,
    one_coin_matrices,
    one_coin_skill,
)
from annotrace.aggregation.evidence import Evidence
from annotrace.parameters import Count, Number, Positive, Seed


def leading_classes(votes: Tensor) -> Tensor:
    """Give one to the class with the highest vote, shared where several have it.

    Parameters
    ----------
    votes : Tensor of shape (n_items, n_classes)

    Returns
    -------
    Tensor of shape (n_items, n_classes)
        Rows sum to one.
    """
    highest = (votes >= votes.amax(1, keepdim=True) - 1e-9).to(votes.dtype)
    return highest / highest.sum(1, keepdim=True)


class IterativeWeightedVote(Aggregation):
    """Vote, weigh annotators by agreement with the result, vote again.

    Parameters
    ----------
    smoothing : float
        Added to each count of an annotator's labels that agree or not.
    max_iter, tol, warm_iter, random_state
        As in `Aggregation`; it has converged when no item changes its class.
    """

    def __init__(
        self,
        *,
        smoothing: Positive = 0.01,
        max_iter: Count = 100,
        tol: Number = 1e-5,
        warm_iter: Count = 10,
        random_state: Seed = 0,
    ) -> None:
        super().__init__(max_iter=max_iter, tol=tol, warm_iter=warm_iter, random_state=random_state)
        self.smoothing = smoothing

    def _start(self, evidence: Evidence) -> Tensor:
        return evidence.votes()

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        leading = evidence.set_gold(leading_classes(state))
        counts = counts_with_past(evidence, leading)
        self._skill = one_coin_skill(counts, self.smoothing)
        self._prior = estimate_prior(evidence, leading)

    def _weights(self, n_classes: int) -> Tensor:
        return n_classes * self._skill - 1

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        n = evidence.shape[1]
        same = torch.eye(n, dtype=evidence.dtype)
        votes = evidence.add_up(self._weights(n)[:, None, None] * same)
        # Votes below zero count for all other classes.
        votes -= votes.amin(1, keepdim=True).clamp(max=0)
        total = votes.sum(1, keepdim=True)
        shares = torch.where(total > 0, votes / total.clamp(min=RARE), 1 / n)
        shares[evidence.unknown] = self._prior
        return evidence.set_gold(shares), self._log_likelihood(evidence)

    def _log_likelihood(self, evidence: Evidence) -> float:
        matrices = one_coin_matrices(self._skill, evidence.shape[1])
        log_prior = self._prior.clamp(min=RARE).log()
        return evidence.infer(matrices.log_(), log_prior)[1]

    def _by_vote(self) -> bool:
        return True

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        return one_coin_matrices(self._skill, evidence.shape[1]), self._prior
