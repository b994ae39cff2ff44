r"""MACE: annotators either know or guess.

On each label annotator r knows the truth and reports it with probability :math:`\theta_r`, or
guesses from a label marginal of their own, :math:`\xi_r`, whatever the truth:

.. math:: p(j \mid k, r) = \theta_r \delta_{kj} + (1 - \theta_r) \xi_{rj}.

Variational Bayes with the paper's priors, Beta(.5, .5) on knowing and a symmetric Dirichlet(10)
on guesses, classes equally likely, started from majority votes rather than at random.

Use it to find annotators who answer without looking. Not where errors depend on the true class:
someone who takes b for a but never a for b neither knows nor guesses.

D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy, Learning whom to trust with MACE,
NAACL-HLT 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from annotrace.aggregation.base import IterativeAggregation
from annotrace.aggregation.em_model import SMALLEST, MatrixEMModel
from annotrace.crowd.dirichlet import divergence, expected_log
from annotrace.crowd.problem import CrowdProblem
from annotrace.parameters import Count, Positive

# Where the iterations start: the probability that a correct report was known.
INITIAL_KNOWN = 0.9


class MACEModel(MatrixEMModel):
    """Annotators who know the truth or guess.

    Parameters
    ----------
    problem : CrowdProblem
    knowing, guessing : float
        Parameters of the priors.
    """

    known: Tensor
    knows: Tensor
    guesses: Tensor

    def __init__(self, problem: CrowdProblem, knowing: float, guessing: float) -> None:
        super().__init__(problem)
        n_annotators, n, _ = problem.shape
        self._knowing_prior = self.prior.new_full((1, 1, 2), knowing)
        self._guessing_prior = self.prior.new_full((1, 1, n), guessing)
        self.register_buffer("known", self.prior.new_full((n_annotators, n), INITIAL_KNOWN))
        self.register_buffer("knows", self._knowing_prior.repeat(n_annotators, 1, 1))
        self.register_buffer("guesses", self._guessing_prior.repeat(n_annotators, 1, 1))

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Update who knows, and how they guess."""
        counts = problem.counts(state)
        known = self.known * counts.diagonal(dim1=1, dim2=2)
        guessed = counts.sum(1) - known
        totals = torch.stack([known.sum(1), guessed.sum(1)], 1)
        self.knows = totals[:, None] + self._knowing_prior
        self.guesses = guessed[:, None] + self._guessing_prior

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the posterior and the evidence lower bound."""
        log_knows, log_guesses = expected_log(self.knows), expected_log(self.guesses)
        guessed = log_guesses + log_knows[..., 1:]
        correct = torch.logaddexp(guessed, log_knows[..., :1])
        self.known = (log_knows[..., :1] - correct).exp_()[:, 0]
        same = torch.eye(self.n_classes, dtype=torch.bool)
        logs = torch.where(same, correct, guessed)
        log_joint = problem.labels.sum_matrices(logs).add_(self.prior.log())
        posterior, log_evidence = problem.e_step(log_joint)
        lost = divergence(self.knows, self._knowing_prior, log_knows)
        lost += divergence(self.guesses, self._guessing_prior, log_guesses)
        return posterior, log_evidence + float(problem.log_prior_counts(logs) - lost)

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices at the posterior means."""
        same = torch.eye(self.n_classes, dtype=self.knows.dtype)
        knowing, marginal = self._means()
        guesses = marginal[:, None].expand(-1, self.n_classes, -1)
        return torch.lerp(guesses, same, knowing[:, None, None]).clamp_min(SMALLEST).log()

    def learned(self) -> dict[str, Any]:
        """Return what the aggregation shows of the model, by attribute name."""
        knowing, marginal = self._means()
        return {"knowing_": knowing.numpy(), "guess_marginal_": marginal.numpy()}

    def _means(self) -> tuple[Tensor, Tensor]:
        """Return who knows, (n_annotators,), and what they guess, (n_annotators, n_classes)."""
        knowing = self.knows[:, 0, 0] / self.knows.sum((1, 2))
        return knowing, self.guesses[:, 0] / self.guesses.sum(2)


@dataclass(kw_only=True, eq=False, repr=False)
class MACE(IterativeAggregation):
    """Annotators who know the truth or guess.

    Parameters
    ----------
    knowing : float
        Both parameters of the Beta prior on the probability of knowing.
    guessing : float
        Parameter of the Dirichlet prior on guesses.
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`.

    Attributes
    ----------
    knowing_ : ndarray of shape (n_annotators,)
        Probability that an annotator knows: the competence of the paper.
    guess_marginal_ : ndarray of shape (n_annotators, n_classes)
        What an annotator reports when guessing.
    """

    knowing: Positive = 0.5
    guessing: Positive = 10.0
    max_iter: Count = 100

    method: ClassVar[str] = "mace"

    def _make_model(self, problem: CrowdProblem) -> MACEModel:
        return MACEModel(problem, self.knowing, self.guessing)
