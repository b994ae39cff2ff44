"""Wawa, worker agreement with aggregate: one vote, weights by agreement, a second vote.

The method of CrowdFlower's platform (now Appen). A cheap improvement on majority vote where some
annotators guess; weights are never negative, so adversaries keep a voice. See `weighted_vote` for
the same idea carried to its end.
"""

from __future__ import annotations

from torch import Tensor

from annotrace.aggregation.evidence import Evidence
from annotrace.aggregation.weighted_vote import IterativeWeightedVote
from annotrace.parameters import Positive, Seed


class Wawa(IterativeWeightedVote):
    """Majority vote, then a vote weighted by each annotator's agreement with it.

    Parameters
    ----------
    smoothing : float
        Added to each count of an annotator's labels that agree or not.
    random_state : int, Generator, RandomState or None
        Breaks ties in `predict`.
    """

    def __init__(self, *, smoothing: Positive = 0.01, random_state: Seed = 0) -> None:
        super().__init__(smoothing=smoothing, max_iter=1, warm_iter=1, random_state=random_state)

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        super()._learn(evidence, evidence.votes())

    def _weights(self, n_classes: int) -> Tensor:
        return self._skill

    def _has_settled(self, objective: list[float], n_labels: int) -> bool:
        return True
