"""Annotator models that EM fits, together with the class prior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel, MatrixModel
from annotrace.crowd.problem import CrowdProblem

# A class that no item has keeps a logarithm.
SMALLEST = 1e-12
# The share of items that may still change their class.
FEW_CHANGES = 1e-3


class EMModel(AnnotatorModel):
    """An annotator model with the two steps of EM.

    The *state* of an item is its class, or a class and something more: state s is of class
    ``s % n_classes``. All that is learned are buffers, so that a run can save it.

    Parameters
    ----------
    problem : CrowdProblem
    """

    is_vote = False
    """Whether the posterior holds shares of votes, which are not probabilities."""

    prior: Tensor

    def __init__(self, problem: CrowdProblem) -> None:
        super().__init__()
        self.n_annotators, self.n_classes, _ = problem.shape
        uniform = torch.full((self.n_classes,), 1 / self.n_classes, dtype=problem.dtype)
        self.register_buffer("prior", uniform)

    def initial_state(self, problem: CrowdProblem) -> Tensor:
        """Return the first state of each item, shape (n_items, n_states)."""
        return problem.votes()

    @abstractmethod
    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Learn annotators and class shares from the states of items."""

    @abstractmethod
    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the states of items, shape (n_items, n_states), and the objective."""

    def all_states(self, problem: CrowdProblem, state: Tensor | None = None) -> Tensor:
        """Return the states of items as an array (n_items, n_states), whatever `e_step` returns.

        `state` is the last that it returned, if the model is as it was then.
        """
        return self.e_step(problem)[0] if state is None else state

    def prepare_for(self, saved: Mapping[str, Tensor]) -> None:
        """Make room for what a run has saved, if its size does not follow from the problem."""

    def learned(self) -> dict[str, Any]:
        """Return what the aggregation shows of the model, by attribute name."""
        return {}

    def warm_start(self, previous: EMModel) -> None:
        """Copy what was learned from fewer annotators, items or classes."""
        own = dict(self.named_buffers())
        for name, learned in previous.named_buffers():
            # Large crowds have models with other buffers than small ones.
            if name in own and np.all(np.less_equal(learned.shape, own[name].shape)):
                own[name][tuple(slice(size) for size in learned.shape)] = learned


class MatrixEMModel(EMModel, MatrixModel):
    """A model with the two steps of EM and an array of all confusion matrices."""

    log: Tensor

    def __init__(self, problem: CrowdProblem) -> None:
        super().__init__(problem)
        self.register_buffer("log", torch.zeros(problem.shape, dtype=problem.dtype))

    def log_matrices(self) -> Tensor:
        """Return the logarithms of all matrices, shape (n_annotators, n_classes, n_classes)."""
        return self.log


def by_class(state: Tensor, n_classes: int) -> Tensor:
    """View states (n_items, n_states) as (n_items, n_levels, n_classes)."""
    return state.view(len(state), -1, n_classes)


def is_stable(problem: CrowdProblem, before: Tensor, now: Tensor) -> bool:
    """Whether the most probable class of hardly any item has changed.

    Parameters
    ----------
    problem : CrowdProblem
    before, now : Tensor of shape (n_items, n_classes)
    """
    return problem.fraction(before.argmax(1) != now.argmax(1)) < FEW_CHANGES


def class_shares(problem: CrowdProblem, posterior: Tensor) -> Tensor:
    """Return the share of each class among items with labels or a gold class, (n_classes,)."""
    # Items that do not count are subtracted, which may leave a hair below 0.
    total = problem.total(posterior).clamp_min(0)
    return (total / total.sum()).to(problem.dtype)


def one_coin_skill(counts: Tensor, smoothing: float) -> Tensor:
    """Return the share of correct reports, (n_annotators,).

    Parameters
    ----------
    counts : Tensor of shape (n_annotators, n_classes, n_classes)
    smoothing : float
        Added to every count.
    """
    correct, total = counts.diagonal(dim1=1, dim2=2).sum(1), counts.sum((1, 2))
    return smoothed_skill(correct, total, counts.shape[1], smoothing)


def smoothed_skill(correct: Tensor, total: Tensor, n_classes: int, smoothing: float) -> Tensor:
    """Return the share of correct labels, all cells of a matrix smoothed, (n_annotators,)."""
    return (correct + smoothing * n_classes) / (total + smoothing * n_classes**2)


def one_coin_matrices(skill: Tensor, n_classes: int) -> Tensor:
    """Return matrices with one probability of a correct label and all errors equally likely.

    Parameters
    ----------
    skill : Tensor of shape (n_annotators,)
    n_classes : int

    Returns
    -------
    Tensor of shape (n_annotators, n_classes, n_classes)
    """
    if n_classes == 1:
        return torch.ones_like(skill)[:, None, None]
    same = torch.eye(n_classes, dtype=torch.bool)
    wrong = (1 - skill) / (n_classes - 1)
    return torch.where(same, skill[:, None, None], wrong[:, None, None])
