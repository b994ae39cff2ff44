"""From what a labelling tool holds to what it is to hold: gold, texts, predictions and queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from annotrace.allocation import Fitted, allocate
from annotrace.allocation.available import Available, AvailableAnnotators, Cost
from annotrace.connect.tool import Prediction, Pulled
from annotrace.data import TextSource
from annotrace.diagnosis.confidence import confidence
from annotrace.errors import InputError, count, first_few
from annotrace.labels import LabelTable
from annotrace.labels.gold import gold_by_name

# An item is in doubt if its class is correct with a lower probability.
SURE = 0.9
# Labels that each annotator gets in a plan, on average.
LABELS_EACH = 10


def gold_of(table: LabelTable, given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the gold items: answers marked as truth in the tool, and those given, which prevail.

    None if there are none.
    """
    known = {} if table.truth is None else gold_by_name(table, table.truth)
    return {**known, **given} or None


def field_of(pulled: Pulled, field: str, option: str) -> dict[str, Any]:
    """Return a field of each item, which an option names."""
    for item, fields in pulled.data.items():
        if fields.get(field) is None:
            raise InputError(
                f"Item {item} has no field {field!r}; it has {first_few(fields, 10)}. Name another "
                f"one with {option}."
            )
    return {item: fields[field] for item, fields in pulled.data.items()}


def texts_of(pulled: Pulled, field: str) -> TextSource:
    """Return a field of the items as texts."""
    texts, source = field_of(pulled, field, "--text"), f"the field {field!r}"
    return TextSource(list(texts.values()), list(texts), source=source, columns=[field])


def predictions_of(model: Fitted) -> list[Prediction]:
    """Return the estimated class of each item with its calibrated probability."""
    result = model.result_
    names = map(str, result.table.items.tolist())
    classes = map(str, result.table.classes[result.estimate].tolist())
    return list(map(Prediction, names, classes, confidence(result).tolist()))


class Queue(NamedTuple):
    """The labels to ask for: the items of each annotator, and the highest gain of a label."""

    items: dict[str, list[str]]
    best_gain: float


def plan_queue(
    model: Fitted, budget: float | None = None, available: Available = None, cost: Cost = 1.0
) -> Queue:
    """Plan the next labels; see `annotrace.allocate`.

    Parameters
    ----------
    model : fitted classifier or aggregation
    budget : float, optional
        Ten labels per annotator by default.
    available, cost
        As in `annotrace.allocate`.

    Returns
    -------
    Queue
        With everybody who can be asked, also those for whom there is nothing to do.
    """
    asked = AvailableAnnotators(model.result_.table.annotators, available, cost)
    names = [str(name) for name in asked.names[asked.capacity > 0].tolist()]
    if budget is None:
        budget = LABELS_EACH * max(1.0, float(asked.cost[asked.capacity > 0].sum()))
    plan = allocate(model, budget, available=available, cost=cost)
    items: dict[str, list[str]] = {name: [] for name in names}
    for item, annotator in zip(plan["item"], plan["annotator"], strict=True):
        items[str(annotator)].append(str(item))
    return Queue(items, float(plan["expected_gain"].max() or 0.0))


class Status(NamedTuple):
    """Where a project stands.

    Attributes
    ----------
    n_labels, n_items, n_doubtful : int
    accuracy : float
        The mean probability that the class of an item is correct.
    cost : float or None
        Of all labels so far.
    """

    n_labels: int
    n_items: int
    n_doubtful: int
    accuracy: float
    cost: float | None

    @classmethod
    def of(cls, model: Fitted, cost: float | None = None) -> Status:
        """Return the status after a fit; `cost` is that of one label."""
        table, sure = model.result_.table, confidence(model.result_)
        spent = None if cost is None else cost * table.n_labels
        n_doubtful = int(np.sum(sure < SURE))
        return cls(table.n_labels, table.n_items, n_doubtful, float(sure.mean()), spent)

    def __str__(self) -> str:
        parts = [
            f"{count(self.n_labels, 'label')} of {count(self.n_items, 'item')}",
            f"{self.n_doubtful:,} in doubt (below {SURE:g})",
            f"estimated accuracy {self.accuracy:.3f}",
        ]
        if self.cost is not None:
            parts.append(f"cost so far {self.cost:,.2f}")
        return ", ".join(parts)


def describe_gain(gain: float, min_gain: float, cost: float | None) -> str | None:
    """Return a line if further labels do not pay, as the best gains too little; else None."""
    if gain >= min_gain:
        return None
    if gain == 0:
        return "Further labels no longer pay: none is expected to gain anything."
    needed = round(1 / gain)
    price = "" if cost is None else f", at a cost of {cost * needed:,.2f}"
    return (
        f"Further labels no longer pay: one more correct item would take about {needed:,} of the "
        f"best of them{price}."
    )


def check_gold(pulled: Pulled, gold: Mapping[str, Any], source: str) -> None:
    """Raise an `InputError` for gold items that the project does not have."""
    if unknown := [item for item in gold if item not in pulled.data]:
        raise InputError(
            f"{source}: {count(len(unknown), 'item is', 'items are')} not in the project "
            f"({first_few(unknown)}). Items are named by their number, or as --item says."
        )
