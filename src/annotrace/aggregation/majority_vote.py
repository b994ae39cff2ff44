"""Majority vote: the class most often reported, ties told and broken by seed.

The yardstick of every other method, and hard to beat with one or two labels an item. The share
of votes stands for a probability; the matrices are each annotator's answers against those shares.
"""

from __future__ import annotations

from torch import Tensor

from annotrace.aggregation.base import Aggregation, counts_with_past, smoothed_matrices
from annotrace.aggregation.dawid_skene import RARE, estimate_prior
from annotrace.aggregation.evidence import Evidence
from annotrace.parameters import Positive, Seed


class MajorityVote(Aggregation):
    """The class most often reported.

    Parameters
    ----------
    smoothing : float
        Added to each count of a report, for the matrices.
    random_state : int, Generator, RandomState or None
        Breaks ties in `predict`; `ties_` tells which items had one.

    Examples
    --------
    >>> from annotrace.labels import LabelTable
    >>> table = LabelTable.from_codes([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [1, 1, 0, 0, 1])
    >>> vote = MajorityVote().fit(table)
    >>> vote.ties_
    array([False,  True])
    """

    def __init__(self, *, smoothing: Positive = 0.01, random_state: Seed = 0) -> None:
        super().__init__(max_iter=1, warm_iter=1, random_state=random_state)
        self.smoothing = smoothing

    def _start(self, evidence: Evidence) -> Tensor:
        return evidence.votes()

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        self._votes = evidence.votes()
        self._prior = estimate_prior(evidence, self._votes)
        counts = counts_with_past(evidence, self._votes)
        self._matrices = smoothed_matrices(counts, self.smoothing)

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        log_prior = self._prior.clamp(min=RARE).log()
        _, log_likelihood = evidence.infer(self._matrices.log(), log_prior)
        self._votes[evidence.unknown] = self._prior
        return self._votes, log_likelihood

    def _has_settled(self, objective: list[float], n_labels: int) -> bool:
        return True

    def _by_vote(self) -> bool:
        return True

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        return self._matrices, self._prior
