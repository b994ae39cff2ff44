"""Columns of whatever kind as codes and names, with empty cells marked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.vocabulary import (
    TEXT,
    Codes,
    Names,
    as_names,
    as_text,
    encode,
    in_order,
    look_up,
)


class Coded(NamedTuple):
    """A column as codes of shape (n,), -1 where a cell is empty, and the names they stand for."""

    codes: Codes
    names: Names

    def take(self, rows: NDArray[np.int64]) -> Coded:
        """Keep some rows, and every name."""
        return Coded(self.codes[rows], self.names)

    def without(self, names: Iterable[Any]) -> Coded:
        """Make the cells that hold one of some names empty; numbers are compared as text."""
        kept = ~np.isin(as_text(self.names), as_text(as_names(names)).tolist())
        renumbered = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)
        return Coded(renumbered[self.codes], self.names[kept])

    def as_text(self) -> Coded:
        """Turn the names into text."""
        return Coded(self.codes, as_text(self.names))

    def in_order(self) -> Coded:
        """Give numbers to the names in their order instead of as they appear."""
        names = in_order(self.names)
        renumbered = np.append(look_up(self.names, names), np.int32(-1))
        return Coded(renumbered[self.codes], names)


def merge(columns: list[Coded]) -> tuple[list[Codes], Names]:
    """Give columns with vocabularies of their own one vocabulary; their codes, and the names."""
    if len({column.names.dtype == TEXT for column in columns if len(column.names)}) > 1:
        columns = [column.as_text() for column in columns]
    used = [column.names for column in columns if len(column.names)]
    merged, names = encode(np.concatenate(used) if used else np.empty(0, TEXT))
    start = np.cumsum([0] + [len(column.names) for column in columns[:-1]])
    codes = [
        np.append(merged[first : first + len(column.names)], np.int32(-1))[column.codes]
        for first, column in zip(start, columns, strict=True)
    ]
    return codes, names


def as_answers(values: Any) -> NDArray[Any]:
    """Give answers as an array in which what is missing stays so, beside text or under a mask."""
    if isinstance(values, np.ma.MaskedArray):
        filled = values.data.astype(object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    array = np.asarray(values)
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        return np.array(values, dtype=object)
    return array


def is_series(values: Any) -> bool:
    """Tell whether values are a pandas series, which has an index beside them."""
    return hasattr(values, "index") and hasattr(values, "items")


def by_index(series: Any, what: str) -> dict[Any, Any]:
    """Give a pandas series as the mapping from its index; where that repeats, values must too."""
    values: dict[Any, Any] = {}
    for name, value in series.items():
        if name in values and values[name] != value:
            raise InputError(
                f"The index of `{what}` names {str(name)[:60]!r} more than once, with "
                f"{values[name]!r} and {value!r}: keep one."
            )
        values[name] = value
    return values


def goes_by_position(series: Any) -> bool:
    """Tell whether the index of a pandas series is but the number of each row."""
    return list(series.index) == list(range(len(series)))


def encode_answers(array: NDArray[Any], source: str) -> Coded:
    """Give numbers to the cells of an array, row by row; as `encode_values`, and -1 is empty.

    In an array of floats, -1 is empty where all are whole numbers.

    Parameters
    ----------
    array : ndarray of shape (n_items, n_annotators)
    """
    if array.ndim != 2:
        raise InputError(
            f"{source} must have a row an item and a column an annotator, but has shape "
            f"{array.shape}."
        )
    flat = array.ravel()
    if flat.dtype.kind == "i" or _are_whole(flat):
        filled = _filled(flat) & (flat != -1)
        return _scatter(filled, as_names(flat[filled]))
    if flat.dtype.kind == "O":
        return encode_values([None if _is_minus_one(value) else value for value in flat])
    return encode_values(flat)


def encode_values(values: Any) -> Coded:
    """Give numbers to the values of a list or array; None, NaN and "" are empty."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        filled = _filled(values)
        return _scatter(filled, as_names(values[filled]))
    listed = [_lists_as_text(value) for value in values]
    filled = np.array([is_filled(value) for value in listed], dtype=bool)
    return _scatter(filled, as_names([value for value in listed if is_filled(value)]))


def encode_series(series: Any) -> Coded:
    """Give numbers to the values of a narwhals series; nulls, NaN and "" are empty."""
    import narwhals as nw

    if series.dtype == nw.String and series.implementation.is_polars():
        return _encode_polars_text(series.to_native())
    if series.dtype.is_integer() and not series.is_null().any():
        return Coded(*encode(series.to_numpy()))
    if series.dtype.is_temporal():
        series = series.cast(nw.String)
    return encode_values(series.to_list())


def _encode_polars_text(series: Any) -> Coded:
    """Give numbers to names by the rows of each (a cast to Enum is slower with many names)."""
    import polars as pl

    rows = pl.DataFrame({"name": series, "row": np.arange(len(series), dtype=np.int32)})
    filled = rows.filter((pl.col("name") != "").fill_null(False))
    groups = filled.group_by("name", maintain_order=True).agg("row")
    codes = np.full(len(series), -1, np.int32)
    counts = groups["row"].list.len().to_numpy()
    codes[groups["row"].explode().to_numpy()] = np.repeat(
        np.arange(len(groups), dtype=np.int32), counts
    )
    return Coded(codes, np.array(groups["name"].to_list(), dtype=TEXT))


def _are_whole(array: NDArray[Any]) -> bool:
    """Tell whether an array is of floats that are whole numbers, or missing."""
    return array.dtype.kind == "f" and bool(np.all(np.isnan(array) | (array == np.floor(array))))


def _is_minus_one(value: Any) -> bool:
    return isinstance(value, Real) and value == -1


def _filled(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return np.asarray(~np.isnan(array), dtype=bool)
    if array.dtype.kind in "US" or array.dtype == TEXT:
        return np.asarray(array != (b"" if array.dtype.kind == "S" else ""), dtype=bool)
    return np.ones(len(array), bool)


def is_filled(value: Any) -> bool:
    """Tell whether a cell holds something: None, NaN and "" are nothing."""
    if value is None or isinstance(value, str):
        return bool(value)
    # NaN does not equal itself, and pandas' NA equals nothing, not even in a yes or no.
    same = value == value
    return isinstance(same, bool | np.bool_) and bool(same)


def _lists_as_text(value: Any) -> Any:
    """Several labels in a cell are refused later, where the row is known."""
    if isinstance(value, list | tuple | np.ndarray):
        return json.dumps(list(value), default=str)
    return value


def _scatter(filled: NDArray[np.bool_], names: Names) -> Coded:
    codes = np.full(len(filled), -1, np.int32)
    codes[filled], vocabulary = encode(names)
    return Coded(codes, vocabulary)
