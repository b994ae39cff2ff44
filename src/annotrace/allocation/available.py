"""The annotators who can be asked, with their capacity and the cost of their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, first_few
from annotrace.labels.frames import has_default_index, is_series, series_to_dict
from annotrace.labels.vocabulary import Names, as_names, check_names, look_up, union_names

Available: TypeAlias = int | Iterable[Any] | Mapping[Any, int | None] | None
Cost: TypeAlias = float | Mapping[Any, float]

UNLIMITED = np.iinfo(np.int64).max


class AvailableAnnotators:
    """The annotators of the table, followed by new ones.

    Parameters
    ----------
    known : ndarray of shape (n_annotators,)
        The names of the table's annotators.
    available, cost
        As in `annotrace.allocate`.

    Attributes
    ----------
    names : ndarray of shape (n_annotators + n_new,)
    n_new : int
    capacity : ndarray of shape (n_annotators + n_new,), int64
        0 for those who cannot be asked.
    cost : ndarray of shape (n_annotators + n_new,)
    """

    def __init__(self, known: Names, available: Available, cost: Cost) -> None:
        self.names, self.capacity = _capacities(known, available)
        self.n_new = len(self.names) - len(known)
        self.cost = _costs(self.names, cost)


def _capacities(known: Names, available: Available) -> tuple[Names, NDArray[np.int64]]:
    if available is None or isinstance(available, int | np.integer):
        each = _as_capacity(available, "each annotator")
        return known, np.full(len(known), each, np.int64)
    if isinstance(available, str):
        raise InputError(
            f"Expected `available` to be a list of names, but got {available!r}. "
            f"Use available=[{available!r}]."
        )
    if is_series(available):
        available = _limits(available)
    limits = available if isinstance(available, Mapping) else dict.fromkeys(available)
    asked = check_names(list(limits), len(limits), "available")
    names = union_names(known, asked)
    capacity = np.zeros(len(names), np.int64)
    capacity[look_up(asked, names)] = [_as_capacity(limit, who) for who, limit in limits.items()]
    return names, capacity


def _limits(series: Any) -> dict[Any, Any]:
    """Convert a pandas series to a dict by its index, unless it has the default index."""
    if has_default_index(series):
        raise InputError(
            "Expected `available` to be names, or numbers of labels by name, but this series may "
            "be either: pass its .tolist() for names, or its .to_dict() for numbers."
        )
    return series_to_dict(series, "available")


def _as_capacity(limit: Any, who: Any) -> int:
    if limit is None:
        return UNLIMITED
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 0:
        raise InputError(
            f"Expected the maximum number of labels by {who} to be a whole number of at least 0, "
            f"or None for no maximum, but got {limit!r}."
        )
    return min(int(limit), UNLIMITED)


def _costs(names: Names, cost: Cost) -> NDArray[np.float64]:
    if is_series(cost):
        cost = series_to_dict(cost, "cost")
    if not isinstance(cost, Mapping):
        return np.full(len(names), _as_cost(cost, "each annotator"))
    given = as_names(list(cost))
    codes = look_up(given, names)
    if np.any(codes < 0):
        raise InputError(
            f"`cost` names {np.sum(codes < 0)} annotators who are neither in the labels nor in "
            f"`available`: {first_few(given[codes < 0])}."
        )
    costs = np.ones(len(names))
    costs[codes] = [_as_cost(value, who) for who, value in cost.items()]
    return costs


def _as_cost(value: Any, who: Any) -> float:
    try:
        cost = float(value)
    except (TypeError, ValueError):
        cost = np.nan
    if not 0 < cost < np.inf:
        raise InputError(f"Expected the cost of a label by {who} to be above 0, but got {value!r}.")
    return cost
