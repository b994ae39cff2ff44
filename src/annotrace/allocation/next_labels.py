"""The labels to collect next: those from which most is expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from annotrace.allocation.available import Available, AvailableAnnotators, Cost
from annotrace.allocation.gain import Array
from annotrace.allocation.plan import ROUNDING, Plan
from annotrace.allocation.reasons import describe_label_reason, find_reason
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.confidence import independent_posterior
from annotrace.estimators import check_fitted
from annotrace.labels.frames import convert_frame, named_series
from annotrace.labels.vocabulary import Names
from annotrace.parameters import Count, Natural, Positive, check_value

# No item is certain: a class with all of the posterior may still be wrong. What is held back falls
# with the labels of the item, and moves no item past one that is truly uncertain.
CAUTION = 0.02
# The probability of a correct label beyond chance, as long as nothing compares annotators.
ASSUMED_SKILL = 0.5
# The share of the budget that new annotators get at most.
NEWCOMER_SHARE = 0.5


class Fitted(Protocol):
    """A fitted classifier or aggregation."""

    result_: CrowdResult


def allocate(
    model: Fitted,
    budget: float,
    *,
    cost: Cost = 1.0,
    available: Available = None,
    at_least: int = 10,
    per_item: int = 1,
) -> Any:
    """Choose the labels to collect next: which item, by whom, and why.

    Labels are planned one after the other, each time the one with the highest expected gain per
    cost, given the posterior of the items and the annotators' confusion matrices. Fit again when
    the labels are there, then allocate again: several small batches gain more than a large one.

    Parameters
    ----------
    model : fitted CrowdEstimator or Aggregation
    budget : float
        The total cost; the number of labels if each costs 1.
    cost : float or mapping from annotator to float
        Of one label; 1 for annotators that are not named.
    available : int, collection of annotators, mapping from annotator to int or None, optional
        Who can be asked, and for how many labels at most (None: no maximum). The table's annotators
        by default; a single number is the maximum of each of them. Names that are not in the table
        are new annotators, who are assumed to be like the average one.
    at_least : int
        Annotators with fewer labels are asked first, until they have this many: up to half of the
        budget goes into estimating their skill.
    per_item : int
        Maximum number of new labels per item.

    Returns
    -------
    frame
        item, annotator, priority (1 is the first), expected_gain, reason. Shorter than the budget
        if capacity is used up, or if no other label would gain anything.

    Examples
    --------
    >>> import annotrace as at
    >>> table = at.LabelTable.from_long({
    ...     "item": ["a", "a", "a", "b", "b", "b", "c", "c"],
    ...     "annotator": ["ann", "bo", "cy", "ann", "bo", "cy", "ann", "bo"],
    ...     "label": ["cat", "cat", "cat", "dog", "dog", "dog", "cat", "dog"],
    ... })
    >>> truth = at.aggregation.DawidSkene().fit(table)
    >>> at.allocate(truth, 1, at_least=0).select("item", "annotator").rows()
    [('c', 'cy')]
    """
    check_value("budget", budget, Positive)
    check_value("at_least", at_least, Natural)
    check_value("per_item", per_item, Count)
    check_fitted(model)
    annotators = AvailableAnnotators(model.result_.table.annotators, available, cost)
    result = _with_annotators(model.result_, annotators.names)
    matrices = _matrices(result)
    plan = Plan(result.table, _cautious(result), matrices, annotators.cost, per_item)
    n_newcomer_labels = _plan_labels(plan, annotators, budget, at_least)
    return _as_frame(plan, result, n_newcomer_labels)


def _with_annotators(result: CrowdResult, names: Names) -> CrowdResult:
    """Return a result with more annotators, who have no labels."""
    n_new = len(names) - result.table.n_annotators
    if n_new == 0:
        return result
    counts = result.prior_counts
    if counts is not None:
        counts = np.pad(counts, ((0, n_new), (0, 0), (0, 0)))
    return replace(result, table=result.table.replace(annotators=names), prior_counts=counts)


def _matrices(result: CrowdResult) -> Array:
    """Return the confusion matrices of all annotators, (n_annotators, n_classes, n_classes)."""
    n_annotators, n = result.table.n_annotators, result.table.n_classes
    if n > 1 and result.is_comparable:
        return result.annotators.mean
    assumed = ASSUMED_SKILL * np.eye(n) + (1 - ASSUMED_SKILL) / n
    return np.repeat(assumed[None], n_annotators, axis=0)


def _cautious(result: CrowdResult) -> Array:
    """Mix a little of the class shares into the posterior, less for items with many labels."""
    posterior = independent_posterior(result)
    held_back = CAUTION / (1 + result.table.labels_per_item())[:, None]
    mixed: Array = (1 - held_back) * posterior + held_back * posterior.mean(axis=0)
    return mixed


def _plan_labels(plan: Plan, annotators: AvailableAnnotators, budget: float, at_least: int) -> int:
    """Plan labels by annotators with few labels, then by all; return how many the former are."""
    lacking = np.maximum(at_least - plan.table.labels_per_annotator(), 0)
    wanted = np.minimum(lacking, annotators.capacity)
    reserved = NEWCOMER_SHARE * budget
    left = plan.spend(reserved, _affordable(reserved, wanted, annotators.cost))
    n_newcomer_labels = len(plan.labels)
    plan.spend(budget - reserved + left, annotators.capacity - plan.load)
    return n_newcomer_labels


def _affordable(
    budget: float, wanted: NDArray[np.int64], cost: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return how many of the wanted labels the budget pays, for those who lack the fewest first."""
    order = np.argsort(wanted, kind="stable")
    paid = np.zeros_like(wanted)
    for place in order[wanted[order] > 0]:
        affordable = int(budget * (1 + ROUNDING) / cost[place])
        paid[place] = min(wanted[place], affordable)
        budget -= paid[place] * cost[place]
    return paid


def _as_frame(plan: Plan, result: CrowdResult, n_newcomer_labels: int) -> Any:
    import polars as pl

    table, n_labels = result.table, result.table.labels_per_annotator()
    posterior = independent_posterior(result) if result.is_comparable else None
    codes = np.array([label[:2] for label in plan.labels], np.int64).reshape(-1, 2)
    reasons = []
    for place, (item, who) in enumerate(codes.tolist()):
        n_known = int(n_labels[who]) if place < n_newcomer_labels else None
        known = None if posterior is None else posterior[item]
        reason = find_reason(table, item, known, plan.matrices[who], n_known)
        reasons.append(describe_label_reason(reason, str(table.annotators[who]), table))
    planned = pl.DataFrame(
        {
            "item": named_series(table.items, codes[:, 0]),
            "annotator": named_series(table.annotators, codes[:, 1]),
            "priority": range(1, len(plan.labels) + 1),
            "expected_gain": [label.gain for label in plan.labels],
            "reason": reasons,
        },
        schema_overrides={"expected_gain": pl.Float64, "reason": pl.String},
    )
    return convert_frame(planned, table.frame_library)
