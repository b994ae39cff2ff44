r"""MACE: annotators either know or guess.

On each label annotator r knows the truth and reports it with probability :math:`\theta_r`, or
guesses from a habit of their own, :math:`\xi_r`, whatever the truth:

.. math:: p(j \mid k, r) = \theta_r \delta_{kj} + (1 - \theta_r) \xi_{rj}.

Variational Bayes with the paper's priors, Beta(.5, .5) on knowing and a symmetric Dirichlet(10)
on habits, classes equally likely, begun from majority votes rather than from random restarts.

Use it to find people who answer without looking. Not where errors depend on the true class:
someone who takes b for a but never a for b neither knows nor guesses.

D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy, Learning whom to trust with MACE,
NAACL-HLT 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation.base import Aggregation, counts_with_past, log_past
from annotrace.aggregation.dirichlet import divergence, expected_log
from annotrace.aggregation.evidence import Evidence
from annotrace.parameters import Count, Number, Positive, Seed

# Where the iterations begin: how probable it is that a report of the truth was known.
FIRST_KNOWN = 0.9


class MACE(Aggregation):
    """Annotators who know the truth or guess by habit.

    Parameters
    ----------
    knowing : float
        Both parameters of the Beta prior on the probability of knowing.
    guessing : float
        Parameter of the Dirichlet prior on habits.
    max_iter, tol, warm_iter, random_state
        As in `Aggregation`.

    Attributes
    ----------
    knowing_ : ndarray of shape (n_annotators,)
        Probability that an annotator knows: the competence of the paper.
    habit_ : ndarray of shape (n_annotators, n_classes)
        What an annotator reports when guessing.
    """

    knowing_: NDArray[Any]
    habit_: NDArray[Any]

    def __init__(
        self,
        *,
        knowing: Positive = 0.5,
        guessing: Positive = 10.0,
        max_iter: Count = 100,
        tol: Number = 1e-5,
        warm_iter: Count = 10,
        random_state: Seed = 0,
    ) -> None:
        super().__init__(max_iter=max_iter, tol=tol, warm_iter=warm_iter, random_state=random_state)
        self.knowing = knowing
        self.guessing = guessing

    def _start(self, evidence: Evidence) -> Tensor:
        n_annotators, n, _ = evidence.shape
        self._known = torch.full((n_annotators, n), FIRST_KNOWN, dtype=evidence.dtype)
        self._coin = torch.full((1, 2, 1), self.knowing, dtype=evidence.dtype)
        self._even = torch.full((1, n, 1), self.guessing, dtype=evidence.dtype)
        return evidence.votes()

    def _keep(self, before: MACE) -> None:
        n_annotators, n = before._known.shape
        self._known[:n_annotators, :n] = before._known

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        counts = counts_with_past(evidence, state)
        known = self._known * counts.diagonal(dim1=1, dim2=2)
        guessed = counts.sum(2) - known
        totals = torch.stack([known.sum(1), guessed.sum(1)], 1)
        self._knows = totals[:, :, None] + self._coin
        self._guesses = guessed[:, :, None] + self._even

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        log_knows, log_guesses = expected_log(self._knows), expected_log(self._guesses)
        guessed = log_guesses + log_knows[:, 1:]
        right = torch.logaddexp(guessed, log_knows[:, :1])
        self._known = (log_knows[:, :1] - right).exp_()[:, :, 0]
        same = torch.eye(evidence.shape[1], dtype=torch.bool)
        columns = torch.where(same, right, guessed)
        uniform = torch.full((evidence.shape[1],), -np.log(evidence.shape[1]), dtype=columns.dtype)
        posterior, log_evidence = evidence.infer(columns, uniform)
        lost = divergence(self._knows, self._coin, log_knows)
        lost += divergence(self._guesses, self._even, log_guesses)
        return posterior, log_evidence + float(log_past(evidence, columns) - lost)

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        knows = self._knows[:, 0, 0] / self._knows.sum((1, 2))
        habit = self._guesses[:, :, 0] / self._guesses.sum(1)
        self.knowing_, self.habit_ = knows.numpy(), habit.numpy()
        same = torch.eye(evidence.shape[1], dtype=evidence.dtype)
        matrices = torch.lerp(habit[:, :, None].expand(evidence.shape), same, knows[:, None, None])
        return matrices, same.mean(0)
