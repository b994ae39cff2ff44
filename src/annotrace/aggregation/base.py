"""What every aggregation has in common: fit, partial_fit, predict, save."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from annotrace.aggregation.em_model import EMModel, by_class
from annotrace.aggregation.gold_choice import choose_by_gold, has_enough_gold, hold_out_gold
from annotrace.aggregation.run_reader import SavedRun
from annotrace.aggregation.run_schema import Array, CandidateScore
from annotrace.aggregation.saving import SavableModel
from annotrace.crowd.em_threads import measured_threads
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.result import CrowdResult
from annotrace.errors import InputError
from annotrace.estimators import check_fitted, convergence_warning, unfitted_copy
from annotrace.labels.gold import Gold, known_classes
from annotrace.labels.matching import merge_tables
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import plain_names
from annotrace.parameters import Count, Number, Seed, check_parameters
from annotrace.progress import report_stage
from annotrace.seeds import seed_of
from annotrace.undo import unchanged_unless_done
from annotrace.version import versions

if TYPE_CHECKING:
    from typing_extensions import Self

# Sums of the same numbers in another order differ in the last digits; such classes still tie.
TIE = 1e-9
# Items whose ties are broken at a time.
BLOCK = 2**18
# Fewer labels than this are not asked to converge to less than .03 of log-likelihood in all. With
# the tolerance per label the default hit 300 iterations on 38 of 60 simulated crowds of 200 to
# 1,800 labels, now on none, with the same accuracy (.840, .841 before).
FEW = 3000


@dataclass(kw_only=True, eq=False, repr=False)
class Aggregation(SavableModel):
    """Truth from labels alone, by alternating between items and annotators.

    If no item has two labels, and there are neither gold items nor prior counts, nothing compares
    annotators: the labels are returned as they are, with a `confidence_` of at most 0.5.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        Breaks ties in `predict`.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Probability of each class; items without labels have the class shares.
    confidence_ : ndarray of shape (n_items,)
        Probability that the predicted class is correct, allowing for errors that annotators share.
    ties_ : ndarray of bool, shape (n_items,)
        Items for which several classes share the highest probability.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported], rows sum to one; annotators without labels have the pool's.
    skill_ : ndarray of shape (n_annotators,)
        Mean over classes of the probability of a correct label.
    annotators_, confusion_low_, confusion_high_, diagnosis_
        Intervals, flags and verdict; see `annotrace.diagnosis.fitted.FittedCrowd`.
    prior_ : ndarray of shape (n_classes,)
        Class shares.
    objective_ : ndarray of shape (n_iterations,)
        What is maximised, after each iteration.
    n_iter_ : int
    converged_ : bool
    gold_candidates_ : list of dict
        What the posterior is a mixture of, if it was chosen by gold items: name, weight, and
        accuracy and log_loss on gold items that were not learned from.
    table_ : LabelTable
        All labels seen.
    result_ : CrowdResult
        The same, as one object, for everything downstream.
    """

    random_state: Seed = None

    chooses_by_gold: ClassVar[bool] = False
    """Whether gold items choose between this method and others; else they are clamped only."""

    adds_up: ClassVar[bool] = True
    """Whether sums over items, to which several processes can contribute, are all that annotators
    are learned from."""

    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **SavableModel.saved_attributes,
        "gold_candidates_": list[CandidateScore],
        "n_iter_": Count,
        "converged_": bool,
        "objective_": Array("f", (None,)),
        "ties_": Array("b", ("items",)),
    }

    def fit(
        self, table: LabelTable, gold: Gold = None, prior_counts: ArrayLike | None = None
    ) -> Self:
        """Estimate the class of each item and the confusion of each annotator.

        Parameters
        ----------
        table : LabelTable
        gold : mapping from item to class, or array-like of shape (n_items,), optional
            Classes that are known for certain, by name; None, NaN or -1 in an array is unknown.
        prior_counts : array-like of shape (n_annotators, n_classes, n_classes), optional
            Counts [annotator, true, reported] of earlier labels of known items.
        """
        check_parameters(self)
        check_labels(table)
        problem = CrowdProblem(table, known_classes(table, gold), prior_counts)
        with unchanged_unless_done(self), measured_threads(problem):
            self.fit_problem(problem)
            self._use_gold(problem)
        if not self.converged_:
            self._warn()
        return self

    def estimate(self, problem: CrowdProblem) -> tuple[EMModel, Tensor]:
        """Estimate the annotators and the state of each item, without setting a result."""
        check_parameters(self)
        model = self._make_model(problem)
        return model, self._alternate(problem, model, warm=False)

    def conclude(self, problem: CrowdProblem, model: EMModel, state: Tensor) -> None:
        """Set the result of `estimate`, given the problem of all items and their states."""
        self._set_result(problem, model, state)
        self._use_gold(problem)
        if not self.converged_:
            self._warn()

    def fit_problem(self, problem: CrowdProblem) -> Self:
        """Fit labels that are indexed already, for methods made of several; no warnings."""
        with unchanged_unless_done(self):
            model = self._make_model(problem)
            self._iterate(problem, model, warm=False)
        return self

    def partial_fit(self, table: LabelTable) -> Self:
        """Add new labels and continue from the current estimates for a few iterations.

        Parameters
        ----------
        table : LabelTable
            Only the new labels. Items, annotators and classes are matched by name; new ones may
            appear.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(table)
        check_parameters(self)
        _check_table(table)
        with unchanged_unless_done(self):
            problem = self._grown_problem(table)
            model = self._make_model(problem)
            state = model.initial_state(problem)
            model.warm_start(self.annotator_model_)
            known = by_class(self._state, len(self.prior_))
            by_class(state, problem.shape[1])[: len(known), :, : known.shape[2]] = known
            self._iterate(problem, model, state, warm=True)
            self._use_gold(problem)
        return self

    def predict(self) -> NDArray[Any]:
        """Return the most probable class of each item, by name, shape (n_items,)."""
        check_fitted(self)
        predicted: NDArray[Any] = plain_names(self.table_.classes)[self.result_.estimate]
        return predicted

    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""
        return {"annotators": self.annotator_model_}

    def describe(self) -> dict[str, Any]:
        """Return a description of the fit for run.json, in plain types."""
        return {"kind": "aggregation", "ties": int(self.ties_.sum())}

    def largest_shapes(self, problem: CrowdProblem) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the largest tensors of the annotator model, by name."""
        return {"log": problem.shape}

    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""
        problem = CrowdProblem(run.table, run.gold, run.arrays.get("prior_counts"))
        run.check_shapes(self.largest_shapes(problem))
        model = self._make_model(problem)
        model.prepare_for(run.modules.get("annotators", {}))
        run.check_modules({"annotators": model})
        model.load_state_dict(run.modules["annotators"])
        for name, value in run.attributes(self.saved_attributes).items():
            setattr(self, name, value)
        result, comparable = run.result(model), problem.is_comparable
        self._state = model.all_states(problem) if comparable else model.initial_state(problem)
        shown = (self._state.numpy(), *model.learned().values())
        if not all(np.isfinite(each).all() for each in shown):
            raise InputError("Expected an annotator model that gives finite numbers.")
        self._take(result)

    @abstractmethod
    def _make_model(self, problem: CrowdProblem) -> EMModel:
        """Return the annotator model, before any iteration."""

    def _limit(self, *, warm: bool) -> int:
        """Return the maximum number of iterations of `fit`, or of a warm start."""
        return 1

    def _has_converged(self, problem: CrowdProblem, states: list[Tensor], gain: float) -> bool:
        return True

    def _iterate(
        self, problem: CrowdProblem, model: EMModel, start: Tensor | None = None, *, warm: bool
    ) -> None:
        self._set_result(problem, model, self._alternate(problem, model, start, warm=warm))

    def _alternate(
        self, problem: CrowdProblem, model: EMModel, start: Tensor | None = None, *, warm: bool
    ) -> Tensor:
        """Alternate between items and annotators, and return the states (n_items, n_states)."""
        state = model.initial_state(problem) if start is None else start
        comparable = problem.is_comparable
        max_iter = self._limit(warm=warm) if comparable else 1
        objective = [-np.inf]
        # Of a large table, states that are no longer needed are gigabytes.
        converged, initial = False, None if comparable else state
        while len(objective) <= max_iter and not converged:
            model.m_step(problem, state)
            before = state
            state, reached = model.e_step(problem)
            gain = abs(reached - objective[-1])
            converged = self._has_converged(problem, [before, state], gain)
            objective.append(reached)
            report_stage("Estimating, iteration", len(objective) - 1, max_iter)
        self.objective_ = np.array(objective[1:])
        self.n_iter_ = len(self.objective_)
        report_stage("Estimating, iteration", self.n_iter_, self.n_iter_)
        self.converged_ = converged or not comparable
        # If nothing compares annotators, an iteration would decide who is correct from noise.
        return model.all_states(problem, state) if initial is None else initial

    def _conclude(
        self, problem: CrowdProblem, model: EMModel, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the posterior (n_items, n_classes) and the states that the iterations led to."""
        return by_class(state, problem.shape[1]).sum(1), state

    def _set_result(self, problem: CrowdProblem, model: EMModel, state: Tensor) -> None:
        self.versions_, self.gold_candidates_ = versions(), list[CandidateScore]()
        posterior, self._state = self._conclude(problem, model, state)
        prior = model.prior
        posterior[problem.uninformed] = prior.to(posterior.dtype)
        highest = (posterior >= posterior.amax(1, keepdim=True) - TIE).numpy()
        self.ties_ = np.einsum("ik->i", highest, dtype=np.int32, casting="unsafe") > 1
        counts = problem.prior_counts
        self._take(
            CrowdResult(
                table=problem.table,
                posterior=posterior.numpy(),
                estimate=_break_ties(highest, seed_of(self.random_state)),
                annotator_model=model,
                prior=prior.numpy().copy(),
                gold=problem.gold,
                prior_counts=None if counts is None else counts.double().numpy(),
                is_vote=model.is_vote,
            )
        )

    def _evidence(self) -> NDArray[Any]:
        """Return the posterior that gold items correct, shape (n_items, n_classes)."""
        return self.posterior_

    def _use_gold(self, problem: CrowdProblem) -> None:
        """Choose the posterior by gold items, if this method does and there are enough."""
        table, gold = problem.table, problem.gold
        if not self.chooses_by_gold or not has_enough_gold(table, gold):
            return

        def refit(some: NDArray[np.int32]) -> NDArray[Any]:
            part, model = problem.with_gold(some), copy.deepcopy(self.annotator_model_)
            trial = unfitted_copy(self)
            trial._iterate(part, model, model.all_states(part), warm=True)
            evidence: NDArray[Any] = trial._evidence()
            return evidence

        held_out = hold_out_gold(table, gold, self._evidence(), refit)
        posterior, held_out, self.gold_candidates_ = choose_by_gold(table, gold, held_out)
        highest = posterior >= posterior.max(axis=1, keepdims=True) - TIE
        self.ties_ = highest.sum(1) > 1
        estimate = _break_ties(highest, seed_of(self.random_state))
        self._take(replace(self.result_, posterior=posterior, held_out=held_out, estimate=estimate))

    def _take(self, result: CrowdResult) -> None:
        self.result_ = result
        assert isinstance(result.annotator_model, EMModel)
        self.annotator_model_ = result.annotator_model
        for name, value in self.annotator_model_.learned().items():
            setattr(self, name, value)
        self.table_, self.gold_ = result.table, result.gold
        self.posterior_, self.prior_ = result.posterior, result.prior
        self.set_confusion(result)

    def _grown_problem(self, table: LabelTable) -> CrowdProblem:
        """Join new labels to the old, with gold and prior counts padded to the new sizes."""
        merged = merge_tables(self.table_, table)
        gold = np.full(merged.n_items, -1, np.int32)
        gold[: len(self.gold_)] = self.gold_
        old = self.result_.prior_counts
        if old is None:
            return CrowdProblem(merged, gold)
        counts = np.zeros((merged.n_annotators, merged.n_classes, merged.n_classes))
        counts[tuple(slice(size) for size in old.shape)] = old
        return CrowdProblem(merged, gold, counts)

    def _warn(self) -> None:
        pass


@dataclass(kw_only=True, eq=False, repr=False)
class IterativeAggregation(Aggregation):
    """An aggregation that iterates until its objective converges.

    Parameters
    ----------
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when the objective gains less than this per label (of at least 3,000).
    warm_iter : int
        Maximum number of iterations when `partial_fit` adds labels.
    random_state
        As in `Aggregation`.
    """

    max_iter: Count = 300
    tol: Number = 1e-5
    warm_iter: Count = 10

    def _limit(self, *, warm: bool) -> int:
        return self.warm_iter if warm else self.max_iter

    def _has_converged(self, problem: CrowdProblem, states: list[Tensor], gain: float) -> bool:
        return gain <= self.tol * max(problem.n_labels, FEW)

    def _warn(self) -> None:
        warnings.warn(
            f"{type(self).__name__} had not converged after {self.max_iter} iterations: increase "
            f"`max_iter`, or accept a coarser result with `tol` above {self.tol:g}.",
            convergence_warning(),
            stacklevel=3,
        )


def check_labels(table: LabelTable) -> None:
    """Raise an `InputError` unless this is a table with labels to learn from."""
    _check_table(table)
    if table.n_labels == 0:
        raise InputError("Expected a table with labels to learn from, but it has none.")


def _check_table(table: Any) -> None:
    if not isinstance(table, LabelTable):
        raise InputError(
            f"Expected a LabelTable, but got {type(table).__name__}: make one with "
            "`LabelTable.from_long` (one row per label) or `LabelTable.from_wide` (one row per "
            "item)."
        )


def _break_ties(highest: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    rng, chosen = np.random.default_rng(seed), np.empty(len(highest), np.int64)
    for start in range(0, len(highest), BLOCK):
        part = slice(start, start + BLOCK)
        draw = rng.random(highest[part].shape, dtype=np.float32)
        np.argmax(highest[part] * (1 + draw), axis=1, out=chosen[part])
    return chosen
