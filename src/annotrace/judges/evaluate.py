"""The evaluation of a panel of judges, from labels and what is known beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.judges.accuracy import class_rates, confusion_counts, judge_accuracies
from annotrace.judges.agreement import other_votes
from annotrace.judges.drift import drifts, scores_by_period
from annotrace.judges.estimates import Array
from annotrace.judges.inputs import (
    ByAnnotator,
    resolve_costs,
    resolve_gold,
    resolve_kinds,
    resolve_models,
    resolve_periods,
)
from annotrace.judges.models import runs_by_model
from annotrace.judges.panel import compare_panel
from annotrace.judges.people import compare_with_people
from annotrace.judges.prevalence import ClassShare, class_shares, find_unlike
from annotrace.judges.replacement import EPSILON, alternative_annotator_test
from annotrace.judges.result import Judge, JudgePanel
from annotrace.judges.shared_errors import (
    aggregate,
    estimate_dependence,
    measure_dependence,
)
from annotrace.labels.gold import Gold
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

PANEL = "panel"


def evaluate(
    table: LabelTable,
    *,
    gold: Gold = None,
    kind: ByAnnotator | None = None,
    cost: ByAnnotator | None = None,
    model_of: ByAnnotator | str | None = None,
    time: Mapping[Any, Any] | None = None,
    epsilon: float = EPSILON,
    graded: bool = False,
    random_state: int = 0,
) -> JudgePanel:
    """Evaluate judges, such as LLMs, against gold items or people.

    All intervals are at 90 %, and valid whether or not judges err together. Gold items, and items
    that people have labelled, are taken for a random sample of all items.

    Parameters
    ----------
    table : LabelTable
    gold : mapping from item to class, or array-like of shape (n_items,), optional
        Classes that are known for certain; the truth of the table by default.
    kind : mapping from annotator to "person" or "llm", optional
        By default all annotators are judges.
    cost : mapping from annotator to number, optional
        Cost of one label by a judge; 1 by default.
    model_of : mapping from annotator to model, or str, optional
        Which judges are runs of one model. A text separates model and prompt in their names: with
        "/", "gpt/short" and "gpt/long" are runs of "gpt".
    time : mapping from item, or from (item, annotator), to time, optional
        Numbers, or dates such as 2025-03-01, by which drift is tested.
    epsilon : float
        Of the alternative annotator test: how much worse than a person a judge may be, as a share
        of items. The authors recommend 0.2 for experts, 0.15 for trained people and 0.1 for crowds.
    graded : bool
        In that test, compare by distance between classes, which are numbers, instead of equality.
    random_state : int
        Assigns gold items to folds.

    Returns
    -------
    JudgePanel

    Examples
    --------
    >>> table = LabelTable.from_wide(
    ...     [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "b"], ["a", "a", "a"]],
    ...     items=["w", "x", "y", "z"], annotators=["gpt", "llama", "qwen"],
    ... )
    >>> panel = evaluate(table, gold={"w": "a", "x": "b", "y": "a"})
    >>> [(row.judge, round(row.accuracy.value, 2)) for row in panel.rows]
    [('gpt', 1.0), ('llama', 0.67), ('qwen', 0.33)]
    """
    _check(table, epsilon)
    table, known = resolve_gold(table, gold)
    is_judge, costs = resolve_kinds(table, kind), resolve_costs(table, cost)
    models, periods = resolve_models(table, model_of), resolve_periods(table, time)
    judges, people = table.select_annotators(is_judge), table.select_annotators(~is_judge)
    if judges.n_labels == 0:
        raise InputError("Expected labels by judges, but all labels are by people: check `kind`.")
    measured = measure_dependence(judges, known)
    found = JudgePanel(
        judges,
        n_gold=0,
        rows=_bare_rows(judges, costs[is_judge]),
        dependence=estimate_dependence(judges) if measured is None else measured,
        is_measured=measured is not None,
    )
    if np.any(known[judges.item] >= 0):
        found = _with_gold(found, known, random_state)
    if people.n_labels:
        found = _with_people(found, people, epsilon, graded)
    if periods is not None:
        of_judges = is_judge[table.annotator]
        votes = _reference(judges, people, known)
        found = _with_periods(found, votes, periods[0][of_judges], periods[1])
    if models is not None:
        own = [model for model, kept in zip(models, is_judge, strict=True) if kept]
        found = replace(found, model_rows=runs_by_model(judges, known, own))
    return found


def _bare_rows(judges: LabelTable, costs: Array) -> list[Judge]:
    """Return the judges, of which nothing but labels and costs is known yet."""
    columns = (judges.annotators.tolist(), judges.labels_per_annotator().tolist(), costs.tolist())
    return [Judge(name, n_labels, cost=cost) for name, n_labels, cost in zip(*columns, strict=True)]


def _with_gold(found: JudgePanel, known: Codes, random_state: int) -> JudgePanel:
    """Add what gold items show."""
    judges, costs = found.table, np.array([row.cost for row in found.rows])
    panel = compare_panel(judges, known, aggregate(judges).estimate, costs, random_state)
    rows = [
        row._replace(**accuracy._asdict(), adds=each.adds, adds_per_cost=each.adds_per_cost)
        for row, accuracy, each in zip(
            found.rows, judge_accuracies(judges, known), panel.contributions, strict=True
        )
    ]
    return replace(
        found,
        n_gold=panel.n_gold,
        rows=rows,
        rates=class_rates(judges, known),
        counts=confusion_counts(judges, known),
        panel=panel,
        shares=_all_shares(judges, known),
        unlike=find_unlike(judges, known),
    )


def _all_shares(judges: LabelTable, known: Codes) -> list[ClassShare]:
    """Return the corrected class shares by the votes of all judges, and by each judge."""
    shares = class_shares(judges, known, PANEL)
    for code, name in enumerate(judges.annotators.tolist()):
        shares += class_shares(judges.select_annotators(np.array([code])), known, name)
    return shares


def _with_people(found: JudgePanel, people: LabelTable, epsilon: float, graded: bool) -> JudgePanel:
    """Add what people's labels of the same items show."""
    compared = compare_with_people(people, found.table)
    results, comparisons = alternative_annotator_test(
        people, found.table, epsilon=epsilon, graded=graded
    )
    rows = [
        row._replace(
            people=agreement.share,
            people_kappa=agreement.kappa,
            winning_rate=result.winning_rate,
            advantage=result.advantage,
            may_replace=result.passes if result.n_people else None,
        )
        for row, agreement, result in zip(found.rows, compared.judges, results, strict=True)
    ]
    return replace(
        found,
        rows=rows,
        people_together=compared.together,
        people_rows=compared.each,
        replacements=results,
        comparisons=comparisons,
        epsilon=epsilon,
    )


def _with_periods(
    found: JudgePanel, votes: NDArray[Any], period: NDArray[np.int64], names: list[str]
) -> JudgePanel:
    """Add how the judges change over time."""
    return replace(
        found,
        drifts=drifts(found.table, votes, period),
        period_rows=scores_by_period(found.table, votes, period, names),
    )


def _reference(judges: LabelTable, people: LabelTable, known: Codes) -> NDArray[Any]:
    """Return the votes that labels are compared with over time, (n_labels, n_classes).

    Gold if there is some, else people, else the other judges.
    """
    if np.any(known[judges.item] >= 0):
        classes = np.vstack([np.eye(judges.n_classes), np.zeros(judges.n_classes)])
        return classes[known[judges.item]]
    if people.n_labels:
        return people.votes()[judges.item]
    return other_votes(judges, judges)


def _check(table: Any, epsilon: float) -> None:
    if not isinstance(table, LabelTable):
        raise InputError(f"Expected `table` to be a LabelTable, but got {type(table).__name__}.")
    if table.n_labels == 0:
        raise InputError("Expected a table with labels, but it has none.")
    if not 0 <= epsilon < 1:
        raise InputError(f"Expected `epsilon` to be at least 0 and below 1, but got {epsilon}.")
