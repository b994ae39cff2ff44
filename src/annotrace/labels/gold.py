"""Gold items: the conversion of known classes between names and codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError, first_few
from annotrace.labels.frames import has_default_index, is_series, series_to_dict
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes, as_answers, as_names, is_filled, look_up

Gold: TypeAlias = Mapping[Any, Any] | ArrayLike | None


def known_classes(table: LabelTable, gold: Gold) -> Codes:
    """Return the codes of the gold classes.

    Parameters
    ----------
    table : LabelTable
    gold : mapping from item to class, or array-like of shape (n_items,), optional
        By name; None, NaN and, in an array, -1 is unknown. A pandas series is matched by its
        index, or by position if it has the default index and this is unambiguous.

    Returns
    -------
    ndarray of shape (n_items,), int32
        -1 for items that are not gold.
    """
    known = np.full(table.n_items, -1, np.int32)
    if gold is None:
        return known
    if is_series(gold):
        gold = _resolve_series(table, gold)
    if isinstance(gold, Mapping):
        given = {name: value for name, value in gold.items() if is_filled(value)}
        item = look_up(as_names(list(given)), table.items)
        _check_found(item, list(given), "items", "the table does not have them")
        classes = list(given.values())
    else:
        listed = as_answers(gold).astype(object)
        if listed.shape != (table.n_items,):
            raise InputError(
                f"Expected `gold` to have shape ({table.n_items},), a class or None for each "
                f"item, but got {listed.shape}."
            )
        filled = [is_filled(value) and bool(value != -1) for value in listed]
        item = np.flatnonzero(filled).astype(np.int32)
        classes = listed[item].tolist()
    if classes:
        code = look_up(as_names(classes), table.classes)
        _check_found(code, classes, "classes", f"the classes are {first_few(table.classes)}")
        known[item] = code
    return known


def gold_by_name(table: LabelTable, known: Codes) -> dict[Any, Any]:
    """Return the gold items as a dict of names, the inverse of `known_classes`."""
    item = np.flatnonzero(known >= 0)
    names = table.items[item].tolist(), table.classes[known[item]].tolist()
    return dict(zip(*names, strict=True))


def _resolve_series(table: LabelTable, series: Any) -> Gold:
    """Convert a pandas series to a dict by its index, unless it has the default index."""
    if not has_default_index(series):
        return series_to_dict(series[[is_filled(value) for value in series]], "gold")
    position = np.arange(len(series))
    named = look_up(position, table.items)
    if np.any((named >= 0) & (named != position)):
        raise InputError(
            "`gold` has the default index, but the items are named by numbers in another order. "
            "Pass gold.to_dict() to match by name, or gold.tolist() to match by position."
        )
    return series  # type: ignore[no-any-return]


def _check_found(code: NDArray[Any], names: list[Any], what: str, why: str) -> None:
    missing = [names[place] for place in np.flatnonzero(code < 0)]
    if missing:
        raise InputError(f"`gold` has {what} {first_few(missing)}, but {why}.")
