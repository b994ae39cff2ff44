"""What the caller says about annotators and labels, by code: kinds, costs, models, periods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, count, first_few
from annotrace.judges.estimates import Array
from annotrace.labels.gold import Gold, known_classes
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes, as_names, is_filled, look_up, sort_names, union_names

PERSON, LLM = "person", "llm"
# More distinct times than this are cut into fewer periods with equally many labels.
MAX_PERIODS = 12
CUT_PERIODS = 6

ByAnnotator: TypeAlias = Mapping[Any, Any]


def resolve_gold(table: LabelTable, gold: Gold) -> tuple[LabelTable, Codes]:
    """Return the table with the classes of gold too, and the codes of gold classes.

    Parameters
    ----------
    table : LabelTable
    gold : mapping from item to class, or array-like of shape (n_items,), optional
        The truth of the table by default. Classes that nobody has reported are added.
    """
    if gold is None:
        unknown = np.full(table.n_items, -1, np.int32)
        return table, unknown if table.truth is None else table.truth
    if isinstance(gold, Mapping):
        given = [value for value in gold.values() if is_filled(value)]
        table = table.replace(classes=union_names(table.classes, as_names(given)))
    return table, known_classes(table, gold)


def resolve_kinds(table: LabelTable, kind: ByAnnotator | None) -> NDArray[np.bool_]:
    """Return whether each annotator is a judge, shape (n_annotators,); all are without `kind`."""
    if kind is None:
        return np.ones(table.n_annotators, bool)
    given = _by_code(table, kind, "kind")
    other = sorted({str(value) for value in given if value not in (PERSON, LLM, None)})
    if other:
        raise InputError(
            f"Expected `kind` to be {PERSON!r} or {LLM!r}, but got {first_few(other)}."
        )
    _check_all_given(table, given, "kind", f"{PERSON!r} or {LLM!r}")
    is_judge = np.array([value == LLM for value in given])
    if not is_judge.any():
        raise InputError(f"Expected a judge, but no annotator has the kind {LLM!r}.")
    return is_judge


def resolve_costs(table: LabelTable, cost: ByAnnotator | None) -> Array:
    """Return the cost of a label by each annotator, shape (n_annotators,); 1 by default."""
    costs = np.ones(table.n_annotators)
    for code, value in enumerate(_by_code(table, cost or {}, "cost")):
        if value is None:
            continue
        try:
            costs[code] = float(value)
        except (TypeError, ValueError):
            costs[code] = math.nan
        if not (math.isfinite(costs[code]) and costs[code] > 0):
            name = str(table.annotators[code])
            raise InputError(
                f"Expected `cost` to be a number above 0, but got {value!r} for {name!r}."
            )
    return costs


def resolve_models(table: LabelTable, model_of: ByAnnotator | str | None) -> list[Any] | None:
    """Return the model of each annotator, or None if none is given.

    Parameters
    ----------
    table : LabelTable
    model_of : mapping from annotator to model, or str, optional
        A text separates model and prompt in names such as "gpt/short"; the model is what is before
        the last one. Annotators that are not in the mapping are models of their own.
    """
    if model_of is None:
        return None
    names = table.annotators.tolist()
    if isinstance(model_of, str):
        if not model_of:
            raise InputError("Expected `model_of` to be a separator, but got an empty text.")
        return [str(name).rpartition(model_of)[0] or str(name) for name in names]
    given = _by_code(table, model_of, "model_of")
    return [name if model is None else model for name, model in zip(names, given, strict=True)]


def resolve_periods(
    table: LabelTable, time: Mapping[Any, Any] | None
) -> tuple[NDArray[np.int64], list[str]] | None:
    """Return the period of each label, -1 if unknown, and the names of the periods in order.

    Parameters
    ----------
    table : LabelTable
    time : mapping from item, or from (item, annotator), to time, optional
        Times are ordered as numbers if all are, and as text otherwise, which suits dates such as
        2025-03-01. Up to 12 distinct times are periods; more are cut into 6.
    """
    if time is None:
        return None
    filled = {key: value for key, value in time.items() if is_filled(value)}
    by_pair = bool(filled) and all(isinstance(key, tuple) for key in filled)
    values = _times_by_pair(table, filled) if by_pair else _times_by_item(table, filled)
    given = [value for value in values if value is not None]
    if not given:
        raise InputError("Expected `time` to have items of the table, but it has none of them.")
    ordered = sort_names(as_names([str(value) for value in given]))
    place = look_up(as_names(["" if value is None else str(value) for value in values]), ordered)
    return _cut(place.astype(np.int64), [str(name) for name in ordered.tolist()])


def _times_by_item(table: LabelTable, time: Mapping[Any, Any]) -> list[Any]:
    item = look_up(as_names(list(time)), table.items) if time else np.zeros(0, np.int32)
    values = dict(zip(item.tolist(), time.values(), strict=True))
    return [values.get(code) for code in table.item.tolist()]


def _times_by_pair(table: LabelTable, time: Mapping[Any, Any]) -> list[Any]:
    item = look_up(as_names([key[0] for key in time]), table.items)
    annotator = look_up(as_names([key[1] for key in time]), table.annotators)
    pairs = zip(item.tolist(), annotator.tolist(), strict=True)
    values = dict(zip(pairs, time.values(), strict=True))
    rows = zip(table.item.tolist(), table.annotator.tolist(), strict=True)
    return [values.get(pair) for pair in rows]


def _cut(place: NDArray[np.int64], names: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Join neighbouring times into periods with about equally many labels, if there are many."""
    if len(names) <= MAX_PERIODS:
        return place, names
    n_labels = np.bincount(place[place >= 0], minlength=len(names))
    middle = (np.cumsum(n_labels) - n_labels / 2) / n_labels.sum()
    period = np.unique((middle * CUT_PERIODS).astype(np.int64), return_inverse=True)[1]
    joined = [np.flatnonzero(period == each) for each in range(period.max() + 1)]
    titles = [
        names[own[0]] if len(own) == 1 else f"{names[own[0]]} to {names[own[-1]]}" for own in joined
    ]
    return np.append(period, -1)[place], titles


def _by_code(table: LabelTable, given: ByAnnotator, what: str) -> list[Any]:
    """Return the value of each annotator by code, None if it has none."""
    filled = {name: value for name, value in given.items() if is_filled(value)}
    values: list[Any] = [None] * table.n_annotators
    if not filled:
        return values
    codes = look_up(as_names(list(filled)), table.annotators)
    unknown = [name for name, code in zip(filled, codes, strict=True) if code < 0]
    if unknown:
        raise InputError(
            f"`{what}` has annotators {first_few(unknown)}, but the labels do not: there are "
            f"{first_few(table.annotators)}."
        )
    for code, value in zip(codes, filled.values(), strict=True):
        values[code] = value
    return values


def _check_all_given(table: LabelTable, given: list[Any], what: str, rule: str) -> None:
    missing = [name for name, value in zip(table.annotators, given, strict=True) if value is None]
    if missing:
        raise InputError(
            f"Expected `{what}` of every annotator, {rule}, but "
            f"{count(len(missing), 'annotator has', 'annotators have')} none: {first_few(missing)}."
        )
