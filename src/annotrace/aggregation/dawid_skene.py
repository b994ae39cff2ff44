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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation.base import IterativeAggregation
from annotrace.aggregation.em_model import (
    SMALLEST,
    EMModel,
    MatrixEMModel,
    class_shares,
    one_coin_matrices,
    one_coin_skill,
)
from annotrace.aggregation.pooled import PooledModel
from annotrace.aggregation.run_reader import SavedRun
from annotrace.aggregation.run_schema import NOT_NEGATIVE, Array
from annotrace.aggregation.structure_choice import held_out_loss
from annotrace.aggregation.structured import StructuredModel
from annotrace.crowd.cell_structures import CellStructure, OutcomeStructure
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.mixture_structure import MixtureStructure
from annotrace.crowd.problem import CrowdProblem
from annotrace.errors import InputError
from annotrace.labels.taxonomy import class_groups
from annotrace.parameters import Count, Number, Positive, check_parameters
from annotrace.undo import unchanged_unless_done

if TYPE_CHECKING:
    from typing_extensions import Self

Structure = Literal["full", "pooled", "per-class", "low-rank", "taxonomy"]
# Cells of all matrices up to which "auto" tries matrices with a parameter for each.
MAX_DENSE = 2 * 10**7


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
        classes are many: .93 at .01 and .75 at 1 with 100 classes. Of "full" matrices only.
    structure : {"full", "pooled", "per-class", "low-rank", "taxonomy", "auto"}
        Of the matrices. "full" has all cells; "pooled" is that of `PooledDawidSkene`; "per-class"
        has one skill per class and annotator, and the pool's pattern of errors; "low-rank" mixes a
        few matrices that all annotators share; "taxonomy" has confusion within groups of classes
        and shared leakage outside. "auto" chooses by size and by the likelihood of held-out labels.
        The last four never make an array (annotators, classes, classes).
    rank : int
        Of the deviation from the pool in "low-rank".
    taxonomy : mapping from class to group, or path, optional
        The groups of "taxonomy"; see `annotrace.labels.taxonomy.class_groups`.
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`.

    Attributes
    ----------
    structure_ : str
        As given or chosen.
    structure_loss_ : dict from str to float
        Negative log-likelihood per held-out label of each structure, if "auto" compared them.
    groups_ : ndarray of int, shape (n_classes,)
        The group of each class; without a taxonomy each has its own.

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
    structure: Literal["full", "pooled", "per-class", "low-rank", "taxonomy", "auto"] = "full"
    rank: Count = 3
    taxonomy: dict[Any, Any] | str | PathLike[str] | None = None

    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **IterativeAggregation.saved_attributes,
        "structure_": Structure,
        "structure_loss_": dict[str, Number],
        "groups_": Array("i", ("classes",), NOT_NEGATIVE),
    }

    @property
    def method(self) -> str:  # type: ignore[override]
        """The short name."""
        return "one-coin" if self.one_coin else "dawid-skene"

    def fit_problem(self, problem: CrowdProblem) -> Self:
        """Fit labels that are indexed already, for methods made of several; no warnings."""
        with unchanged_unless_done(self):
            self._set_structure(problem)
            return super().fit_problem(problem)

    def estimate(self, problem: CrowdProblem) -> tuple[EMModel, Tensor]:
        """Estimate the annotators and the state of each item, without setting a result."""
        check_parameters(self)
        self._set_structure(problem)
        return super().estimate(problem)

    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""
        saved = run.attributes(self.saved_attributes)
        self.structure_ = saved["structure_"]
        self.groups_: NDArray[Any] = saved["groups_"]
        if self.groups_.max(initial=0) >= run.table.n_classes:
            raise InputError(f"Expected `groups_` to be below {run.table.n_classes}.")
        super().restore(run)

    def largest_shapes(self, problem: CrowdProblem) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the largest tensors of the annotator model, by name."""
        n_annotators, n, _ = problem.shape
        structure = getattr(self, "structure_", self.structure)
        if structure in ("full", "pooled"):
            return super().largest_shapes(problem)
        if structure == "low-rank":
            shared = (self.rank + 1, n, n)
            return {"structure.shared": shared, "structure.weight": (n_annotators, shared[0])}
        n_units, n_outcomes = n, 2
        if structure == "taxonomy":
            n_units, n_outcomes = int(self.groups_.max(initial=0)) + 1, 3
        counts = (n_annotators, n_units, n_outcomes)
        return {"structure.pattern": (n, n), "structure.counts": counts}

    def _set_structure(self, problem: CrowdProblem) -> None:
        self.__dict__.pop("groups_", None)
        # The labels by which structures are compared have no names of classes.
        self._set_groups(problem, needed=self.structure == "taxonomy")
        self.structure_, self.structure_loss_ = self._choose_structure(problem)

    def _choose_structure(self, problem: CrowdProblem) -> tuple[str, dict[str, float]]:
        if self.one_coin and self.structure != "full":
            raise InputError("Expected `structure` to be 'full' with `one_coin`.")
        if self.structure != "auto":
            return self.structure, {}
        names = ["per-class", "low-rank"] if problem.prior_counts is None else []
        if self.taxonomy is not None and names:
            names.append("taxonomy")
        if math.prod(problem.shape) <= MAX_DENSE or not names:
            names = ["full", "pooled", *names]
        loss = held_out_loss(problem, self._make_structure, names)
        # Nothing to compare by: the pool's errors need the fewest labels.
        return (min(loss, key=loss.__getitem__) if loss else names[-1]), loss

    def _make_model(self, problem: CrowdProblem) -> EMModel:
        return self._make_structure(self.structure_, problem)

    def _make_structure(self, name: str, problem: CrowdProblem) -> EMModel:
        n_annotators, n_classes, _ = problem.shape
        self._set_groups(problem, needed=name == "taxonomy")
        if name == "full":
            return DawidSkeneModel(problem, self.smoothing, self.one_coin)
        if name == "pooled":
            return PooledModel(problem)
        structure: CellStructure
        if name == "per-class":
            structure = OutcomeStructure.per_class(n_annotators, n_classes, problem.dtype)
        elif name == "low-rank":
            structure = MixtureStructure(n_annotators, n_classes, self.rank, problem.dtype)
        else:
            group = torch.from_numpy(self.groups_)
            structure = OutcomeStructure.taxonomy(n_annotators, group, problem.dtype)
        return StructuredModel(problem, structure)

    def _set_groups(self, problem: CrowdProblem, *, needed: bool) -> None:
        """Set the groups of classes, unless a saved run had them."""
        if len(getattr(self, "groups_", ())) == problem.shape[1]:
            return
        self.groups_ = np.arange(problem.shape[1], dtype=np.int32)
        if needed or self.taxonomy is not None:
            self.groups_ = class_groups(self.taxonomy, problem.table.classes)
