"""What every aggregation has in common: fit, partial_fit, what is learned, when to stop."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from annotrace.aggregation.evidence import Evidence
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.diagnosis.metrics import skills, with_pool
from annotrace.errors import InputError
from annotrace.labels.gold import Gold, known_classes
from annotrace.labels.matching import merge_tables
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Names
from annotrace.parameters import Count, Number, Seed, check_parameters
from annotrace.training.devices import seed_of
from annotrace.undo import unchanged_unless_done

if TYPE_CHECKING:
    from typing_extensions import Self

# Sums of the same numbers in another order differ in the last digits: no tie is lost to that.
TIE = 1e-9
# A gain of .03 in the log of what is maximised says nothing: few labels are not asked for less.
# The default hit 300 iterations on 38 of 60 simulated crowds of 200 to 1,800 labels; now on none,
# and is as often right (.840, .841 before).
FEW = 3000


class Aggregation(Diagnosed, ABC):
    """Truth from labels alone, by alternating between items and annotators.

    A method says how the truth starts (`_start`), how annotators are learned from it (`_learn`)
    and how the truth follows from annotators (`_infer`). The *state* of an item is its class, or
    a class and something more: state s stands for class ``s % n_classes``.

    Where no item has two labels, and neither gold nor a past is given, there is nothing to compare
    annotators by, and the labels are given back as they are; `confidence_` is then 0.5.

    Parameters
    ----------
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the objective gains less than this for each label, of 3,000 or more.
    warm_iter : int
        Iterations at most when labels are added by `partial_fit`.
    random_state : int, Generator, RandomState or None
        Breaks ties in `predict`, alike until the next fit.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Probability of each class; items without labels have the prior.
    confidence_ : ndarray of shape (n_items,)
        How sure to be of the predicted class: never above `posterior_`, as people err alike,
        but for votes, whose shares are no probabilities.
    ties_ : ndarray of shape (n_items,), bool
        Items of which several classes share the highest probability.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported], rows sum to one; annotators of whom nothing is known
        have the pool's, in which everybody counts by their labels.
    skill_ : ndarray of shape (n_annotators,)
        Mean of the diagonal of `confusion_`.
    annotators_, confusion_low_, confusion_high_, diagnosis_
        Intervals, flags and verdict; see `annotrace.diagnosis.diagnosed.Diagnosed`.
    prior_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_iterations,)
        What is maximised, after each iteration.
    n_iter_ : int
    converged_ : bool
    table_ : LabelTable
        All labels seen.
    """

    posterior_: NDArray[Any]
    ties_: NDArray[np.bool_]
    confusion_: NDArray[Any]
    skill_: NDArray[Any]
    prior_: NDArray[Any]
    objective_: NDArray[np.float64]
    n_iter_: int
    converged_: bool
    table_: LabelTable

    def __init__(
        self,
        *,
        max_iter: Count = 300,
        tol: Number = 1e-5,
        warm_iter: Count = 10,
        random_state: Seed = 0,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.warm_iter = warm_iter
        self.random_state = random_state

    def fit(
        self,
        table: LabelTable,
        gold: Gold = None,
        confusion_prior: ArrayLike | None = None,
    ) -> Self:
        """Learn the truth of items and the confusion of annotators.

        Parameters
        ----------
        table : LabelTable
        gold : mapping from item to class, or array-like of shape (n_items,), optional
            Classes that are known for certain, by name; in an array None, NaN or -1 is unknown.
        confusion_prior : array-like of shape (n_annotators, n_classes, n_classes), optional
            Counts [annotator, true, reported] from each annotator's past.
        """
        check_parameters(self)
        _check_table(table)
        evidence = Evidence(table, known_classes(table, gold), confusion_prior)
        if not evidence.compares:
            return self._give_back(evidence)
        with unchanged_unless_done(self):
            self._iterate(evidence, self._start(evidence), self.max_iter)
        if not self.converged_:
            self._warn()
        return self

    def partial_fit(self, table: LabelTable) -> Self:
        """Add labels that came later, and go on from what was learned for a few iterations.

        Parameters
        ----------
        table : LabelTable
            Only the new labels. Items, annotators and classes are matched by name; new ones may
            appear.
        """
        if not hasattr(self, "table_"):
            return self.fit(table)
        check_parameters(self)
        _check_table(table)
        before, evidence = copy(self), self._grow(table)
        if not evidence.compares:
            return self._give_back(evidence)
        with unchanged_unless_done(self):
            state = self._start(evidence)
            self._keep(before)
            known = _by_class(before._state, before._evidence)
            _by_class(state, evidence)[: len(known), :, : known.shape[2]] = known
            self._iterate(evidence, state, self.warm_iter)
        return self

    def predict(self) -> Names:
        """Give the most probable class of each item, by name, shape (n_items,)."""
        self._check_fitted()
        chosen: Names = self.table_.classes[self._estimate()]
        return chosen

    def save(self, folder: str | Path) -> None:
        """Write what was found to a folder; `annotrace.load` reads it back."""
        from annotrace.aggregation.runs import save_aggregation

        self._check_fitted()
        save_aggregation(self, Path(folder))

    @property
    def settings(self) -> dict[str, Any]:
        """What the aggregation was made with."""
        return {
            name: value
            for name, value in vars(self).items()
            if not (name.startswith("_") or name.endswith("_"))
            and isinstance(value, str | int | float | None)
        }

    # What a method fills in

    @abstractmethod
    def _start(self, evidence: Evidence) -> Tensor:
        """Give the first state of each item, shape (n_items, n_states)."""

    def _keep(self, before: Self) -> None:
        """Take over what was learned before, where sizes may have grown; called after `_start`."""

    @abstractmethod
    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        """Learn annotators and classes from the states of items (the M-step)."""

    @abstractmethod
    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        """Give the states of items and the objective (the E-step)."""

    @abstractmethod
    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        """Give the matrices [annotator, reported, true] and the prior that were learned."""

    # The loop

    def _iterate(self, evidence: Evidence, state: Tensor, max_iter: int) -> None:
        objective: list[float] = []
        self.converged_ = False
        while len(objective) < max_iter and not self.converged_:
            self._learn(evidence, state)
            state, reached = self._infer(evidence)
            objective.append(reached)
            self.converged_ = self._has_settled(objective, evidence.table.n_labels)
        self.objective_ = np.array(objective)
        self.n_iter_ = len(objective)
        self._finish(evidence, state)

    def _give_back(self, evidence: Evidence) -> Self:
        """Take labels as they are: an iteration would only make up who is right."""
        self._iterate(evidence, self._start(evidence), 1)
        self._finish(evidence, self._start(evidence))
        self.converged_ = True
        return self

    def _has_settled(self, objective: list[float], n_labels: int) -> bool:
        enough = self.tol * max(n_labels, FEW)
        return len(objective) > 1 and abs(objective[-1] - objective[-2]) <= enough

    def _finish(self, evidence: Evidence, state: Tensor) -> None:
        matrices, prior = self._describe(evidence)
        self.table_, self._evidence, self._state = evidence.table, evidence, state
        self.gold_, self._lot = evidence.gold, seed_of(self.random_state)
        posterior = _by_class(state, evidence).sum(1)
        posterior[evidence.unknown] = prior.to(evidence.dtype)
        self.posterior_ = posterior.numpy()
        self.ties_ = self._highest().sum(1) > 1
        confusion = matrices.transpose(1, 2).contiguous().numpy()
        self.confusion_ = with_pool(confusion, _labels_behind(evidence).astype(confusion.dtype))
        self.skill_ = skills(self.confusion_)
        self.prior_ = prior.numpy()

    def _grow(self, table: LabelTable) -> Evidence:
        """Join new labels to the old, with gold and past counts padded to the new sizes."""
        old, merged = self._evidence, merge_tables(self.table_, table)
        gold = np.full(merged.n_items, -1, np.int32)
        gold[: len(old.gold)] = old.gold
        if old.past is None:
            return Evidence(merged, gold)
        shape = (merged.n_annotators, merged.n_classes, merged.n_classes)
        past = np.zeros(shape)
        past[tuple(slice(size) for size in old.shape)] = old.past.transpose(1, 2).numpy()
        return Evidence(merged, gold, past)

    def _warn(self) -> None:
        warnings.warn(
            f"{type(self).__name__} was still gaining after {self.max_iter} iterations: raise "
            f"`max_iter`, or from Python accept a coarser answer, with tol= above {self.tol:g}.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _highest(self) -> NDArray[np.bool_]:
        """Tell which classes are the likeliest, shape (n_items, n_classes)."""
        highest: NDArray[np.bool_] = self.posterior_ >= self.posterior_.max(1, keepdims=True) - TIE
        return highest

    def _estimate(self) -> NDArray[np.int64]:
        highest = self._highest()
        lot = np.random.default_rng(self._lot).random(highest.shape, dtype=np.float32)
        chosen: NDArray[np.int64] = np.argmax(highest * (1 + lot), axis=1)
        return chosen

    def _without_labels(self) -> NDArray[Any]:
        return self.prior_

    def _compares(self) -> bool:
        return self._evidence.compares

    def _past(self) -> NDArray[Any] | None:
        past = self._evidence.past
        return None if past is None else past.transpose(1, 2).numpy()

    def _check_fitted(self) -> None:
        if not hasattr(self, "table_"):
            raise InputError(f"{type(self).__name__} has learned nothing yet: call `fit` first.")


def _check_table(table: Any) -> None:
    if not isinstance(table, LabelTable):
        raise InputError(
            f"Expected a LabelTable, but got {type(table).__name__}: make one with "
            "`LabelTable.from_long` (a row a label) or `LabelTable.from_wide` (a row an item)."
        )


def smoothed_matrices(counts: Tensor, smoothing: float) -> Tensor:
    """Turn counts [annotator, reported, true] into probabilities of reports."""
    counts = counts + smoothing
    return counts / counts.sum(1, keepdim=True)


def counts_with_past(evidence: Evidence, posterior: Tensor) -> Tensor:
    """Count reports by true class, those of the past included: [annotator, reported, true]."""
    counts = evidence.count(posterior)
    return counts if evidence.past is None else counts.add_(evidence.past)


def log_past(evidence: Evidence, log_matrices: Tensor) -> Tensor:
    """Log likelihood of the counts of the past, a scalar."""
    if evidence.past is None:
        return torch.zeros((), dtype=torch.float64)
    return (evidence.past * log_matrices).sum(dtype=torch.float64)


def _by_class(state: Tensor, evidence: Evidence) -> Tensor:
    return state.view(len(state), -1, evidence.shape[1])


def _labels_behind(evidence: Evidence) -> NDArray[Any]:
    """Count what is known of each annotator, the past included, shape (n_annotators,)."""
    n_labels = evidence.table.labels_per_annotator()
    return n_labels if evidence.past is None else n_labels + evidence.past.sum((1, 2)).numpy()
