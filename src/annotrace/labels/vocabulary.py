"""Vocabularies: the encoding of items, annotators and classes as int32 codes.

A vocabulary is a one-dimensional array whose k-th entry is the name of code k. Text is stored as
numpy's variable-width strings (16 bytes per short name, a Python string takes about 60); integers
stay integers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError, count, first_few

Names: TypeAlias = NDArray[Any]
Codes: TypeAlias = NDArray[np.int32]

TEXT = np.dtypes.StringDType()
_INT64_LIMIT = 2**63


def as_names(values: ArrayLike | Iterable[Any]) -> Names:
    """Convert values to names of shape (n,): whole numbers to integers, anything else to text.

    Integers that do not fit into 64 bits become text too.
    """
    array = _as_array(values)
    if array.ndim != 1:
        raise InputError(f"Expected names in one dimension, but got shape {array.shape}.")
    if array.dtype.kind in "iu" or array.dtype == TEXT:
        return array
    # float64, because float16 cannot hold the limit.
    if _are_whole(array) and np.all(abs(array) < np.float64(_INT64_LIMIT)):
        return array.astype(np.int64)
    if array.dtype.kind in "OfbSU":
        listed = array.tolist()
        return np.array([v.decode() if isinstance(v, bytes) else str(v) for v in listed], TEXT)
    raise InputError(f"Expected names to be text or integers, but got {array.dtype}.")


def _as_array(values: ArrayLike | Iterable[Any]) -> NDArray[Any]:
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values
    listed = list(values)  # type: ignore[arg-type]
    if all(isinstance(value, str) for value in listed):
        # numpy would pad every name to the longest.
        return np.array(listed, dtype=TEXT)
    if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in listed):
        fits = all(-_INT64_LIMIT <= value < _INT64_LIMIT for value in listed)
        return np.array(listed if fits else list(map(str, listed)), np.int64 if fits else TEXT)
    return np.asarray(values if isinstance(values, np.ndarray) else listed)


def as_text(names: Names) -> Names:
    """Convert names to text: integers to their digits, text unchanged."""
    return names if names.dtype == TEXT else np.array(list(map(str, names.tolist())), dtype=TEXT)


def plain_names(names: Names) -> NDArray[Any]:
    """Return names in a dtype that other libraries accept: text as fixed-width str (``<U..``).

    `astype(str)` and scikit-learn refuse numpy's variable-width strings.
    """
    return np.array(names.tolist(), dtype=str) if names.dtype == TEXT else names


def sort_names(names: Names) -> Names:
    """Return the distinct names, sorted by value if all are numbers ("2" before "10")."""
    distinct = np.unique(names)
    if distinct.dtype != TEXT:
        return distinct
    values = as_numbers(distinct)
    return distinct if values is None else distinct[np.argsort(values, kind="stable")]


def as_numbers(names: Names) -> NDArray[np.float64] | None:
    """Return the values of names if all are finite numbers, otherwise None."""
    try:
        values = np.array([float(name) for name in names.tolist()])
    except ValueError:
        return None
    return values if np.all(np.isfinite(values)) else None


def check_names(given: ArrayLike | Iterable[Any], size: int, what: str) -> Names:
    """Check that there are `size` distinct names."""
    names = as_names(given)
    if len(names) != size:
        raise InputError(f"Expected {count(size, 'name')} in {what}, but got {len(names)}.")
    distinct, counts = np.unique(names, return_counts=True)
    if len(distinct) < size:
        repeated = distinct[counts > 1]
        raise InputError(
            f"Expected distinct names in {what}, but got {count(len(repeated), 'repeated name')}: "
            f"{first_few(repeated)}."
        )
    return names


def encode(names: Names) -> tuple[Codes, Names]:
    """Return the codes of names, shape (n,), and their vocabulary in order of first appearance."""
    if names.dtype == TEXT:
        # Sorting numpy's text takes several times as long as a dictionary.
        numbers: dict[str, int] = {}
        listed = names.tolist()
        codes = np.fromiter((numbers.setdefault(name, len(numbers)) for name in listed), np.int32)
        return codes, np.array(list(numbers), dtype=TEXT)
    distinct, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    rank = np.empty(len(distinct), np.int32)
    rank[by_appearance] = np.arange(len(distinct), dtype=np.int32)
    return rank[inverse], distinct[by_appearance]


def encode_with(names: Names, vocabulary: Names, what: str) -> Codes:
    """Encode names with a given vocabulary; raise an error that lists unknown names."""
    codes = look_up(names, vocabulary)
    unknown = np.unique(names[codes < 0])
    if len(unknown):
        raise InputError(
            f"Expected {what} to be among {first_few(vocabulary)}, but got "
            f"{count(len(unknown), 'other')}: {first_few(unknown)}."
        )
    return codes


def look_up(names: Names, vocabulary: Names) -> Codes:
    """Return the code of each name, -1 for names that are not in the vocabulary.

    Integers and text are compared as text, so that a numeric item column in one file matches the
    same column read as text from another.
    """
    if names.dtype == TEXT or vocabulary.dtype == TEXT:
        numbers = {name: code for code, name in enumerate(as_text(vocabulary).tolist())}
        found = (numbers.get(name, -1) for name in as_text(names).tolist())
        return np.fromiter(found, np.int32, len(names))
    if len(vocabulary) == 0:
        return np.full(len(names), -1, np.int32)
    order = np.argsort(vocabulary, kind="stable")
    place = np.searchsorted(vocabulary[order], names).clip(max=len(vocabulary) - 1)
    codes: Codes = order[place].astype(np.int32)
    codes[vocabulary[codes] != names] = -1
    return codes


def union_names(names: Names, more: Names) -> Names:
    """Append the names of `more` that are new, in order of first appearance."""
    _, new = encode(more[look_up(more, names) < 0])
    if len(new) == 0:
        return names
    if (names.dtype == TEXT) != (new.dtype == TEXT):
        names, new = as_text(names), as_text(new)
    return np.concatenate([names, new])


class Coded(NamedTuple):
    """An encoded column: codes of shape (n,), -1 for an empty cell, and their vocabulary."""

    codes: Codes
    names: Names

    def take(self, rows: NDArray[np.int64]) -> Coded:
        """Keep some rows and the whole vocabulary."""
        return Coded(self.codes[rows], self.names)

    def without(self, names: Iterable[Any]) -> Coded:
        """Empty the cells that hold one of some names, compared as text."""
        kept = ~np.isin(as_text(self.names), as_text(as_names(names)).tolist())
        recoded = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)
        return Coded(recoded[self.codes], self.names[kept])

    def as_text(self) -> Coded:
        """Convert the vocabulary to text."""
        return Coded(self.codes, as_text(self.names))

    def sorted(self) -> Coded:
        """Sort the vocabulary and recode accordingly."""
        names = sort_names(self.names)
        recoded = np.append(look_up(self.names, names), np.int32(-1))
        return Coded(recoded[self.codes], names)


def merge_vocabularies(columns: list[Coded]) -> tuple[list[Codes], Names]:
    """Recode columns with vocabularies of their own to a common vocabulary."""
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
    """Convert answers to an array that keeps None beside text and masked entries as None."""
    if isinstance(values, np.ma.MaskedArray):
        filled = values.data.astype(object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    array = np.asarray(values)
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        return np.array(values, dtype=object)
    return array


def encode_answers(array: NDArray[Any], source: str) -> Coded:
    """Encode the cells of an array of shape (n_items, n_annotators), row by row.

    Cells with -1 (among floats: if all are whole numbers) are empty too.
    """
    if array.ndim != 2:
        raise InputError(
            f"Expected {source} to have one row per item and one column per annotator, but got "
            f"shape {array.shape}."
        )
    flat = array.ravel()
    if flat.dtype.kind == "i" or _are_whole(flat):
        filled = _filled(flat) & (flat != -1)
        return _encode_filled(filled, as_names(flat[filled]))
    if flat.dtype.kind == "O":
        cells = [None if isinstance(cell, Real) and cell == -1 else cell for cell in flat]
        return encode_values(cells)
    return encode_values(flat)


def encode_values(values: Any) -> Coded:
    """Encode a list or array; None, NaN and "" are empty."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        filled = _filled(values)
        return _encode_filled(filled, as_names(values[filled]))
    listed = [_list_to_json(value) for value in values]
    filled = np.array([is_filled(value) for value in listed], dtype=bool)
    return _encode_filled(filled, as_names([value for value in listed if is_filled(value)]))


def is_filled(value: Any) -> bool:
    """Whether a cell has a value: None, NaN, NA and "" are empty."""
    if value is None or isinstance(value, str):
        return bool(value)
    # NaN differs from itself, and comparing pandas' NA gives no bool.
    same = value == value
    return isinstance(same, bool | np.bool_) and bool(same)


def _filled(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return np.asarray(~np.isnan(array), dtype=bool)
    if array.dtype.kind in "US" or array.dtype == TEXT:
        return np.asarray(array != (b"" if array.dtype.kind == "S" else ""), dtype=bool)
    return np.ones(len(array), bool)


def _are_whole(array: NDArray[Any]) -> bool:
    """Whether an array has floats, all of them whole numbers or NaN."""
    if array.dtype.kind != "f":
        return False
    # A damaged file may have signalling NaNs, of which numpy warns.
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.isnan(array) | (array == np.floor(array))))


def _list_to_json(value: Any) -> Any:
    """Write a list as JSON; the error for several labels is raised where the row is known."""
    if isinstance(value, list | tuple | np.ndarray):
        return json.dumps(list(value), default=str)
    return value


def _encode_filled(filled: NDArray[np.bool_], names: Names) -> Coded:
    codes = np.full(len(filled), -1, np.int32)
    codes[filled], vocabulary = encode(names)
    return Coded(codes, vocabulary)
