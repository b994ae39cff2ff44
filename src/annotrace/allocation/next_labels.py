"""Who labels what next: the labels that are expected to tell most of the truth."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from annotrace.allocation.annotators import pooled_matrices
from annotrace.allocation.gain import Array
from annotrace.allocation.people import Available, Cost, People
from annotrace.allocation.plan import ROUNDING, Plan
from annotrace.allocation.reasons import explain
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.labels import LabelTable
from annotrace.labels.frames import convert_frame, named_series
from annotrace.parameters import Count, Natural, Positive, check_value

# No item is taken for certain: a class that has all of the posterior may still be wrong. What is
# held back falls with the labels of the item, and moves no item past one that is in real doubt.
CAUTION = 0.02
# Newcomers get this share of the budget at most.
INTRODUCTIONS = 0.5


class Fitted(Protocol):
    """What is allocated by: a fitted classifier, aggregation, or a run that was read back."""

    table_: LabelTable
    posterior_: NDArray[Any]


def allocate(
    model: Fitted,
    budget: float,
    *,
    cost: Cost = 1.0,
    available: Available = None,
    at_least: int = 10,
    per_item: int = 1,
) -> Any:
    """Choose the labels to ask for next: which item, by whom, and why.

    One label after the other, the one with the highest expected gain for its cost, given the
    posterior of the items and the annotators' matrices. Fit again when the labels are in, and
    allocate anew: several small batches find more than one large one.

    Parameters
    ----------
    model : fitted CrowdEstimator or Aggregation
    budget : float
        What may be spent; the number of labels where each costs 1.
    cost : float or mapping of annotator to float
        Of one label; 1 for whoever is not named.
    available : int, collection of annotators, mapping of annotator to int or None, optional
        Who can be asked, and for how many labels at most (None: any number). Those of the table
        unless given; a single number is the most that each of them can give. Names that are not
        in the table are newcomers.
    at_least : int
        Annotators with fewer labels are asked first, until they have so many: up to half of the
        budget goes into knowing them.
    per_item : int
        New labels of an item at most.

    Returns
    -------
    frame
        item, annotator, priority (1 is the first), expected_gain, reason. Shorter than the budget
        where capacity is used up, or no label is left that would gain anything.

    Examples
    --------
    >>> import annotrace as at
    >>> table = at.LabelTable.from_long({
    ...     "item": ["a", "a", "a", "b", "b", "c", "c"],
    ...     "annotator": ["ann", "bo", "cy", "ann", "bo", "ann", "bo"],
    ...     "label": ["cat", "cat", "dog", "dog", "dog", "cat", "dog"],
    ... })
    >>> truth = at.aggregation.DawidSkene().fit(table)
    >>> at.allocate(truth, 1, at_least=0).select("item", "annotator").rows()
    [('c', 'cy')]
    """
    check_value("budget", budget, Positive)
    check_value("at_least", at_least, Natural)
    check_value("per_item", per_item, Count)
    if isinstance(model, Diagnosed):
        model._check_fitted()
    table = model.table_
    people = People(table.annotators, available, cost)
    posterior = _cautious(model)
    n_new = len(people.names) - table.n_annotators
    matrices = pooled_matrices(table, posterior, n_new)
    plan = Plan(table, posterior, matrices, people.cost, per_item)
    n_labels = np.pad(table.labels_per_annotator(), (0, n_new))
    n_introductions = _plan_labels(plan, people, n_labels, budget, at_least)
    return _as_frame(plan, people, n_labels, _told(model), n_introductions)


def _cautious(model: Fitted) -> Array:
    """Mix a little of what is usual into the posterior, less where there are many labels."""
    posterior = np.asarray(model.posterior_, np.float64)
    held_back = CAUTION / (1 + model.table_.labels_per_item())[:, None]
    mixed: Array = (1 - held_back) * posterior + held_back * posterior.mean(axis=0)
    return mixed


def _told(model: Fitted) -> NDArray[Any] | None:
    """Give the posterior that reasons are told by; None where nothing compares annotators."""
    compared = model._compares() if isinstance(model, Diagnosed) else True
    return model.posterior_ if compared else None


def _plan_labels(
    plan: Plan, people: People, n_labels: NDArray[np.int64], budget: float, at_least: int
) -> int:
    """Plan labels by those who are not known yet, then by all; count the former."""
    wanted = np.minimum(np.maximum(at_least - n_labels, 0), people.capacity)
    reserved = INTRODUCTIONS * budget
    left = plan.spend(reserved, _within(reserved, wanted, people.cost))
    n_introductions = len(plan.labels)
    plan.spend(budget - reserved + left, people.capacity - plan.load)
    return n_introductions


def _within(
    budget: float, wanted: NDArray[np.int64], cost: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Leave as many newcomers their labels as can be paid, those who lack the fewest first."""
    order = np.argsort(wanted, kind="stable")
    paid = np.zeros_like(wanted)
    for place in order[wanted[order] > 0]:
        affordable = int(budget * (1 + ROUNDING) / cost[place])
        paid[place] = min(wanted[place], affordable)
        budget -= paid[place] * cost[place]
    return paid


def _as_frame(
    plan: Plan,
    people: People,
    n_labels: NDArray[np.int64],
    posterior: NDArray[Any] | None,
    n_introductions: int,
) -> Any:
    import polars as pl

    names = people.names.tolist()
    item, annotator = (
        np.array([getattr(label, role) for label in plan.labels], np.int64)
        for role in ("item", "annotator")
    )
    reasons = [
        explain(
            plan.table,
            label.item,
            None if posterior is None else posterior[label.item],
            plan.matrices[label.annotator],
            str(names[label.annotator]),
            int(n_labels[label.annotator]) if place < n_introductions else None,
        )
        for place, label in enumerate(plan.labels)
    ]
    asked = pl.DataFrame(
        {
            "item": named_series(plan.table.items, item),
            "annotator": named_series(people.names, annotator),
            "priority": range(1, len(plan.labels) + 1),
            "expected_gain": [label.gain for label in plan.labels],
            "reason": reasons,
        },
        schema_overrides={"expected_gain": pl.Float64, "reason": pl.String},
    )
    return convert_frame(asked, plan.table.frame_library)
