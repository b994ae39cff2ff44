r"""Dawid-Skene: a confusion matrix for each annotator, by EM.

Each item i has a true class :math:`z_i \sim p`, and annotator r reports j where the truth is k
with probability :math:`\pi^{(r)}_{kj}`. EM alternates

.. math:: T_{ik} \propto p_k \prod_{(r, j)} \pi^{(r)}_{kj}, \qquad
          \pi^{(r)}_{kj} \propto s + \sum_{i : r \text{ reported } j} T_{ik}.

Use it where annotators have many labels of each class. With few, take the pooled prior
(`PooledDawidSkene`), or the default (`Hierarchical`), which also models that items differ.

A. P. Dawid and A. M. Skene, Maximum likelihood estimation of observer error-rates using the EM
algorithm, Applied Statistics 28, 1979.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from annotrace.aggregation.base import IterativeAggregation
from annotrace.aggregation.em_model import (
    SMALLEST,
    MatrixEMModel,
    class_shares,
    one_coin_matrices,
    one_coin_skill,
)
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.parameters import Count, Positive


class DawidSkeneModel(MatrixEMModel):
    """Confusion matrices by maximum likelihood.

    Parameters
    ----------
    problem : CrowdProblem
    smoothing : float
    one_coin : bool
    """

    def __init__(self, problem: CrowdProblem, smoothing: float, one_coin: bool) -> None:
        super().__init__(problem)
        self.smoothing, self.one_coin = smoothing, one_coin

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Estimate matrices and class shares from expected counts."""
        counts = problem.counts(state)
        if self.one_coin:
            skill = one_coin_skill(counts, self.smoothing)
            self.log = one_coin_matrices(skill, self.n_classes).log_()
        else:
            self.log = matrices_from_counts(counts, self.smoothing).log_()
        self.prior = class_shares(problem, state).clamp_(min=SMALLEST)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the posterior, and the log-likelihood plus the log prior of the matrices."""
        log_joint = self.item_log_likelihood(problem.labels).add_(self.prior.log())
        posterior, log_evidence = problem.e_step(log_joint)
        log_density = self.smoothing * self.log.sum(dtype=torch.float64)
        return posterior, log_evidence + float(log_density + problem.log_prior_counts(self.log))


@dataclass(kw_only=True, eq=False, repr=False)
class DawidSkene(IterativeAggregation):
    """Maximum likelihood of a confusion matrix for each annotator.

    Parameters
    ----------
    one_coin : bool
        One probability of a correct label per annotator in place of a matrix.
    smoothing : float
        Added to each count (a Dirichlet prior of 1 + smoothing). Large values cost accuracy where
        classes are many: .93 at .01 and .75 at 1 with 100 classes.
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`.

    Examples
    --------
    >>> from annotrace.labels import LabelTable
    >>> table = LabelTable.from_codes([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 1, 1])
    >>> DawidSkene().fit(table).predict()
    array([0, 1], dtype=int32)
    """

    one_coin: bool = False
    smoothing: Positive = 0.01
    max_iter: Count = 100

    @property
    def method(self) -> str:  # type: ignore[override]
        """The short name."""
        return "one-coin" if self.one_coin else "dawid-skene"

    def _make_model(self, problem: CrowdProblem) -> DawidSkeneModel:
        return DawidSkeneModel(problem, self.smoothing, self.one_coin)
