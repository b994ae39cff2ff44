r"""Dawid-Skene: a confusion matrix for each annotator, by EM.

Each item i has a true class :math:`z_i \sim p`, and annotator r reports j where the truth is k
with probability :math:`\pi^{(r)}_{kj}`. EM alternates

.. math:: T_{ik} \propto p_k \prod_{(r, j)} \pi^{(r)}_{kj}, \qquad
          \pi^{(r)}_{kj} \propto s + \sum_{i : r \text{ reported } j} T_{ik}.

Use it where annotators have many labels of each class. With few, take the pooled prior
(`PooledDawidSkene`), or the default (`Hierarchical`), which also knows that items differ.

A. P. Dawid and A. M. Skene, Maximum likelihood estimation of observer error-rates using the EM
algorithm, Applied Statistics 28, 1979.
"""

from __future__ import annotations

import torch
from torch import Tensor

from annotrace.aggregation.base import Aggregation, counts_with_past, log_past, smoothed_matrices
from annotrace.aggregation.evidence import Evidence
from annotrace.parameters import Count, Number, Positive, Seed

# A class that no item has keeps a logarithm.
RARE = 1e-12


def estimate_prior(evidence: Evidence, posterior: Tensor) -> Tensor:
    """Give the share of each class among items of which something is known; (n_classes,)."""
    total = evidence.total(posterior)
    return (total / total.sum()).to(evidence.dtype)


def one_coin_skill(counts: Tensor, smoothing: float) -> Tensor:
    """Give the share of right reports; (n_annotators,).

    Parameters
    ----------
    counts : Tensor of shape (n_annotators, n_classes, n_classes)
    smoothing : float
        Added to every count.
    """
    counts = counts + smoothing
    return counts.diagonal(dim1=1, dim2=2).sum(1) / counts.sum((1, 2))


def one_coin_matrices(skill: Tensor, n_classes: int) -> Tensor:
    """Lay skills out as matrices: every class as easy, every error as likely.

    Parameters
    ----------
    skill : Tensor of shape (n_annotators,)
    n_classes : int

    Returns
    -------
    Tensor of shape (n_annotators, n_classes, n_classes)
    """
    same = torch.eye(n_classes, dtype=torch.bool)
    wrong = (1 - skill) / max(n_classes - 1, 1)
    return torch.where(same, skill[:, None, None], wrong[:, None, None])


class DawidSkene(Aggregation):
    """Maximum likelihood of a confusion matrix for each annotator.

    Parameters
    ----------
    one_coin : bool
        One number an annotator, the probability of being right, in place of a matrix.
    smoothing : float
        Added to each count of a report (a Dirichlet prior of 1 + smoothing). Large values cost
        accuracy where classes are many: .93 at .01 and .75 at 1 with 100 classes.
    max_iter, tol, warm_iter, random_state
        As in `Aggregation`.

    Examples
    --------
    >>> from annotrace.labels import LabelTable
    >>> table = LabelTable.from_codes([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 1, 1])
    >>> DawidSkene().fit(table).predict()
    array([0, 1], dtype=int32)
    """

    def __init__(
        self,
        *,
        one_coin: bool = False,
        smoothing: Positive = 0.01,
        max_iter: Count = 100,
        tol: Number = 1e-5,
        warm_iter: Count = 10,
        random_state: Seed = 0,
    ) -> None:
        super().__init__(max_iter=max_iter, tol=tol, warm_iter=warm_iter, random_state=random_state)
        self.one_coin = one_coin
        self.smoothing = smoothing

    def _start(self, evidence: Evidence) -> Tensor:
        return evidence.votes()

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        counts = counts_with_past(evidence, state)
        self._log_matrices = self._estimate_matrices(counts).log_()
        self._log_prior = estimate_prior(evidence, state).clamp_(min=RARE).log_()

    def _estimate_matrices(self, counts: Tensor) -> Tensor:
        if self.one_coin:
            return one_coin_matrices(one_coin_skill(counts, self.smoothing), counts.shape[1])
        return smoothed_matrices(counts, self.smoothing)

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        posterior, log_likelihood = evidence.infer(self._log_matrices, self._log_prior)
        return posterior, log_likelihood + self._log_density(evidence)

    def _log_density(self, evidence: Evidence) -> float:
        """Log prior of the matrices, without its constant."""
        density = self.smoothing * self._log_matrices.sum(dtype=torch.float64)
        return float(density + log_past(evidence, self._log_matrices))

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        return self._log_matrices.exp(), self._log_prior.exp()
