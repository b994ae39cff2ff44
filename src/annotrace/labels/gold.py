"""Classes that are known for certain, as whoever has them writes them down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError, first_few
from annotrace.labels.coding import as_answers, by_index, goes_by_position, is_filled, is_series
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes, as_names, look_up

Gold: TypeAlias = Mapping[Any, Any] | ArrayLike | None


def known_classes(table: LabelTable, gold: Gold) -> Codes:
    """Code the classes that are known for certain.

    Parameters
    ----------
    table : LabelTable
    gold : mapping from item to class, or array-like of shape (n_items,), optional
        By name; None, NaN and, in an array, -1 is unknown. A pandas series goes by its index,
        unless that only numbers its rows; where the items have these numbers for names, in another
        order, it is refused.

    Returns
    -------
    ndarray of shape (n_items,), int32
        -1 where the class is not known.
    """
    known = np.full(table.n_items, -1, np.int32)
    if gold is None:
        return known
    if is_series(gold):
        gold = _by_index(table, gold)
    if isinstance(gold, Mapping):
        filled = {name: value for name, value in gold.items() if is_filled(value)}
        item = look_up(as_names(list(filled)), table.items)
        _check_found(item, list(filled), "items", "there are no such items")
        classes = list(filled.values())
    else:
        listed = as_answers(gold).astype(object)
        if listed.shape != (table.n_items,):
            raise InputError(
                f"Expected `gold` to be of shape ({table.n_items},), a class or None for each "
                f"item, but got {listed.shape}."
            )
        item = np.flatnonzero([_is_known(value) for value in listed]).astype(np.int32)
        classes = listed[item].tolist()
    if classes:
        code = look_up(as_names(classes), table.classes)
        _check_found(code, classes, "classes", f"the classes are {first_few(table.classes)}")
        known[item] = code
    return known


def by_name(table: LabelTable, known: Codes) -> dict[Any, Any]:
    """Give codes of known classes, shape (n_items,), as `known_classes` takes them."""
    item = np.flatnonzero(known >= 0)
    names = table.items[item].tolist(), table.classes[known[item]].tolist()
    return dict(zip(*names, strict=True))


def _by_index(table: LabelTable, series: Any) -> Gold:
    """Give a pandas series as the mapping from its index, if that does not number its rows."""
    if not goes_by_position(series):
        return by_index(series[[is_filled(value) for value in series]], "gold")
    named = look_up(np.arange(len(series)), table.items)
    if np.any((named >= 0) & (named != np.arange(len(series)))):
        raise InputError(
            "The index of `gold` numbers its rows, and the items have such numbers for names, in "
            "another order: pass its .to_dict() if they are names, its .tolist() if they are not."
        )
    return series  # type: ignore[no-any-return]


def _is_known(value: Any) -> bool:
    return is_filled(value) and bool(value != -1)


def _check_found(code: NDArray[Any], names: list[Any], what: str, why: str) -> None:
    missing = [names[place] for place in np.flatnonzero(code < 0)]
    if missing:
        raise InputError(f"`gold` names {what} {first_few(missing)}, but {why}.")
