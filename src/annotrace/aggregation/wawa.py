"""Wawa, worker agreement with aggregate: one vote, weights by agreement, a second vote.

The method of CrowdFlower's platform (now Appen). A cheap improvement on majority vote where some
annotators guess; weights are never negative, so adversaries still have influence. `weighted_vote`
iterates the same idea until it converges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.weighted_vote import WeightedVoteModel
from annotrace.crowd.problem import CrowdProblem
from annotrace.parameters import Positive


class WawaModel(WeightedVoteModel):
    """Weights are the agreement with the majority vote."""

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Learn how often each annotator agrees with the majority vote."""
        super().m_step(problem, problem.votes())

    def weights(self) -> Tensor:
        """Return the weight of each annotator's votes, shape (n_annotators,)."""
        return self.skill


@dataclass(kw_only=True, eq=False, repr=False)
class Wawa(Aggregation):
    """Majority vote, then a vote weighted by each annotator's agreement with it.

    Parameters
    ----------
    smoothing : float
        Added to each count of an annotator's labels that agree or not.
    random_state : int, Generator, RandomState or None
        Breaks ties in `predict`.
    """

    smoothing: Positive = 0.01

    method: ClassVar[str] = "wawa"

    def _make_model(self, problem: CrowdProblem) -> WawaModel:
        return WawaModel(problem, self.smoothing)
