r"""The default: annotators with their own skill and the pool's errors, items clear or doubtful.

No known method is best everywhere: some crowds want one number per annotator, some the full
matrix, and where annotators err *together*, on items that are hard for all, a full matrix
explains the hard items in place of the classes. This model contains the others.

* *Annotators.* Row k of the matrix of annotator r is drawn from a Dirichlet distribution whose
  mean is correct with the annotator's own skill, :math:`d_r`, and errs as the pool does,
  :math:`q_{kj}`, and whose strength s is shared:
  :math:`\pi^{(r)}_k \sim Dir(s\,[d_r \delta_{kj} + (1 - d_r) q_{kj}])`. A large s is one coin,
  a small s is the full matrix, and s is learned.
* *Items.* An item is clear or doubtful. On a clear item annotators report by their matrix; on a
  doubtful one each label is, with probability lambda, a guess by the annotator's label marginal
  :math:`g_r`, which says nothing about the truth (as in MACE, but by item). How many items are
  doubtful (30 % at most) and how much is guessed (80 % at most) is learned.

Variational Bayes; s, d and q maximise the evidence lower bound (`annotrace.crowd.dirichlet`), which
no iteration lowers. `docs/aggregation.md` has what was tried and what each part gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation.base import IterativeAggregation
from annotrace.aggregation.em_model import (
    FEW_CHANGES,
    EMModel,
    MatrixEMModel,
    by_class,
    is_stable,
)
from annotrace.aggregation.run_schema import FRACTIONS, Array
from annotrace.aggregation.sparse_hierarchical import N_LEVELS, SparseHierarchicalModel
from annotrace.crowd.dependent_annotators import DependentAnnotators
from annotrace.crowd.dirichlet import divergence, expected_log, log_vague, update_pool
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.item_difficulty import cap_doubtful, margin, split_counts, state_logs
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.skill_prior import SkillPrior

# From so many items on, it is enough that few estimated classes change in an iteration: on a
# million items and 5 million labels 8 iterations instead of 31, and the same accuracy, .967.
MANY_ITEMS = 200_000
# The gain per label above which classes are not even compared.
LARGE_GAIN = 1e-3
# Cells of all matrices up to which they are an array, even if labels are fewer.
FEW_CELLS = 2**20


class HierarchicalModel(MatrixEMModel):
    """Dirichlet posteriors of matrices under a `SkillPrior`, and a state per item.

    State k is a clear item of class k, state n_classes + k a doubtful one.
    """

    marginal: Tensor
    seen: Tensor
    dirichlet: Tensor
    guesses: Tensor
    guess_rate: Tensor
    classes: Tensor
    levels: Tensor

    def __init__(self, problem: CrowdProblem) -> None:
        super().__init__(problem)
        n_annotators, n, _ = problem.shape
        votes = problem.votes()
        counts = problem.label_counts(votes)
        agreement = counts.diagonal(dim1=1, dim2=2).sum() / counts.sum()
        self.annotators = SkillPrior(n_annotators, n, float(agreement), problem.dtype)
        self.register_buffer("marginal", votes.new_full((1, 1, n), 4 / n))
        self.register_buffer("seen", votes.new_full(problem.shape, 0.5))
        self.register_buffer("dirichlet", self.annotators.alpha())
        self.register_buffer("guesses", votes.new_full((n_annotators, 1, n), 4 / n))
        self.register_buffer("guess_rate", votes.new_tensor(0.5))
        self.register_buffer("classes", torch.ones(1, 1, n, dtype=torch.float64))
        self.register_buffer("levels", torch.ones(1, 1, 2, dtype=torch.float64))

    def initial_state(self, problem: CrowdProblem) -> Tensor:
        """Return the votes, split into clear and doubtful by the lead of the first class."""
        votes = problem.votes()
        clear = 0.1 + 0.8 * margin(votes)
        return torch.cat([votes * clear, votes * (1 - clear)], 1)

    def warm_start(self, previous: EMModel) -> None:
        """Copy what was learned from fewer annotators, items or classes."""
        super().warm_start(previous)
        self.annotators.normalize_pattern()

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Update matrices and their prior, guesses, class shares and the share of doubt."""
        counts, guess_counts, self.guess_rate = split_counts(problem.label_counts(state), self.seen)
        if problem.prior_counts is not None:
            counts = counts + problem.prior_counts
        self.annotators.update(counts)
        self.dirichlet = counts + self.annotators.alpha()
        self.marginal = update_pool(guess_counts, self.marginal)
        self.guesses = guess_counts + self.marginal
        total = problem.total(state).view(2, -1)
        self.classes = 1 + total.sum(0)[None, None]
        self.levels = cap_doubtful(1 + total.sum(1))[None, None]
        self.prior = (self.classes / self.classes.sum()).flatten().to(problem.dtype)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the states of items and the evidence lower bound."""
        logs, log_guesses = expected_log(self.dirichlet), expected_log(self.guesses)
        by_state, self.seen = state_logs(logs, log_guesses, self.guess_rate)
        log_classes, log_levels = expected_log(self.classes), expected_log(self.levels)
        log_prior = (log_levels.view(2, 1) + log_classes.view(1, -1)).flatten().to(problem.dtype)
        log_joint = problem.labels.sum_matrices(by_state).add_(log_prior)
        state, log_evidence = problem.e_step(log_joint)
        lost = divergence(self.dirichlet, self.annotators.alpha(), logs)
        lost += divergence(self.guesses, self.marginal, log_guesses)
        lost += divergence(self.classes, torch.ones_like(self.classes), log_classes)
        lost += divergence(self.levels, torch.ones_like(self.levels), log_levels)
        gained = self.annotators.log_density() + log_vague(self.marginal)
        gained += (self.guess_rate * (1 - self.guess_rate)).log() + problem.log_prior_counts(logs)
        return state, log_evidence + float(gained - lost)

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices averaged over clear and doubtful items."""
        return self._expected_model().log_matrices()

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, summed over clear and doubtful."""
        return self._expected_model().item_log_likelihood(labels)

    def learned(self) -> dict[str, Any]:
        """Return what the aggregation shows of the model, by attribute name."""
        strength = self.annotators.strength
        return {"guess_rate_": float(self.guess_rate), "strength_": float(strength)}

    def _expected_model(self) -> DependentAnnotators:
        """Return the annotator model at the posterior means."""
        return DependentAnnotators(
            matrices_from_counts(self.dirichlet),
            matrices_from_counts(self.guesses),
            self.guess_rate,
            self.levels[0, 0, 1] / self.levels.sum(),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Hierarchical(IterativeAggregation):
    """Own skill, the pool's pattern of errors, and items that are clear or doubtful.

    Parameters
    ----------
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`. With 200,000 items or more it also stops when fewer than 1 in
        1,000 estimated classes change, unless `tol` is 0.

    Attributes
    ----------
    doubt_ : ndarray of shape (n_items,)
        Probability that an item is doubtful.
    guess_rate_ : float
        How often a label of a doubtful item is a guess.
    strength_ : float
        How closely the rows of an annotator follow skill and pattern, in labels.
    """

    method: ClassVar[str] = "hierarchical"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **IterativeAggregation.saved_attributes,
        "doubt_": Array("f", ("items",), FRACTIONS),
    }

    def _make_model(self, problem: CrowdProblem) -> EMModel:
        dense = self._has_matrices(problem)
        return HierarchicalModel(problem) if dense else SparseHierarchicalModel(problem)

    def largest_shapes(self, problem: CrowdProblem) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the largest tensors of the annotator model, by name."""
        if self._has_matrices(problem):
            return super().largest_shapes(problem)
        n_annotators, n, _ = problem.shape
        return {"annotators.pattern": (n, n), "guesses": (n_annotators, 1, n)}

    def _has_matrices(self, problem: CrowdProblem) -> bool:
        """Whether the annotator model holds an array of all confusion matrices."""
        n_cells = math.prod(problem.shape)
        few = n_cells <= max(problem.n_labels, FEW_CELLS)
        return few or problem.prior_counts is not None

    def _has_converged(self, problem: CrowdProblem, states: list[Tensor], gain: float) -> bool:
        if super()._has_converged(problem, states, gain):
            return True
        many = problem.n_items >= MANY_ITEMS
        if self.tol == 0 or not many or gain > LARGE_GAIN * problem.n_labels:
            return False
        before, now = states
        if before.shape != now.shape:
            return False
        if now.shape[1] == N_LEVELS:
            moved = (before.sum(1) - now.sum(1)).abs().sum() / 2
            return float(moved) < FEW_CHANGES * problem.n_items
        before, now = (by_class(state, problem.shape[1]).sum(1) for state in states)
        return is_stable(problem, before, now)

    def _set_result(self, problem: CrowdProblem, model: EMModel, state: Tensor) -> None:
        super()._set_result(problem, model, state)
        self.doubt_: NDArray[Any] = self._state[:, problem.shape[1] :].sum(1).numpy()
