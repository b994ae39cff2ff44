"""Majority vote: the class most often reported, ties broken at random.

The baseline of every other method, and hard to beat with one or two labels per item. The shares of
votes stand for probabilities; the matrices are each annotator's reports against those shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.em_model import SMALLEST, MatrixEMModel, class_shares
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.parameters import Positive


class VoteModel(MatrixEMModel):
    """Matrices counted against the shares of votes."""

    is_vote = True

    def __init__(self, problem: CrowdProblem, smoothing: float) -> None:
        super().__init__(problem)
        self.smoothing = smoothing

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Count reports against the votes."""
        votes = problem.votes()
        self.prior = class_shares(problem, votes)
        self.log = matrices_from_counts(problem.counts(votes), self.smoothing).log_()

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the shares of votes and the log-likelihood of the labels."""
        log_prior = self.prior.clamp(min=SMALLEST).log()
        log_joint = self.item_log_likelihood(problem.labels).add_(log_prior)
        votes = problem.votes()
        votes[problem.uninformed] = self.prior
        return votes, problem.e_step(log_joint)[1]


@dataclass(kw_only=True, eq=False, repr=False)
class MajorityVote(Aggregation):
    """The class most often reported.

    Parameters
    ----------
    smoothing : float
        Added to each count of a report, for the matrices.
    random_state : int, Generator, RandomState or None
        Breaks ties in `predict`; `ties_` has the items concerned.

    Examples
    --------
    >>> from annotrace.labels import LabelTable
    >>> table = LabelTable.from_codes([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [1, 1, 0, 0, 1])
    >>> vote = MajorityVote().fit(table)
    >>> vote.ties_
    array([False,  True])
    """

    smoothing: Positive = 0.01

    method: ClassVar[str] = "majority"

    def _make_model(self, problem: CrowdProblem) -> VoteModel:
        return VoteModel(problem, self.smoothing)
