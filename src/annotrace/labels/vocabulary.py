"""Names for codes: how items, annotators and classes are numbered.

A vocabulary is a one-dimensional array whose k-th entry is the name of code k. Text is held in
numpy's variable-width strings (16 bytes a short name, where a Python string takes about 60);
integers stay integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError, first_few

Names: TypeAlias = NDArray[Any]
Codes: TypeAlias = NDArray[np.int32]

TEXT = np.dtypes.StringDType()
BEYOND = 2**63  # the first number that int64 does not hold


def as_names(values: ArrayLike | Iterable[Any]) -> Names:
    """Turn values into names: integers as they are, whole floats as integers, the rest as text.

    So are whole numbers that 64 bits do not hold.

    Parameters
    ----------
    values : array-like of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
        Of an integer dtype or of `TEXT`.
    """
    array = _as_array(values)
    if array.ndim != 1:
        raise InputError(f"Expected names in one dimension, but got an array of {array.shape}.")
    if array.dtype.kind in "iu" or array.dtype == TEXT:
        return array
    if array.dtype.kind == "f" and _fits_integers(array):
        return array.astype(np.int64)
    if array.dtype.kind in "OfbSU":
        return np.array([_as_text(value) for value in array.tolist()], dtype=TEXT)
    raise InputError(f"Names must be text or integers, but got values of type {array.dtype}.")


def _as_array(values: ArrayLike | Iterable[Any]) -> NDArray[Any]:
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values
    listed = list(values)  # type: ignore[arg-type]
    if all(isinstance(value, str) for value in listed):
        # numpy would pad every name to the longest.
        return np.array(listed, dtype=TEXT)
    if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in listed):
        small = all(-BEYOND <= value < BEYOND for value in listed)
        return np.array(listed if small else list(map(str, listed)), np.int64 if small else TEXT)
    return np.asarray(values if isinstance(values, np.ndarray) else listed)


def _fits_integers(array: NDArray[Any]) -> bool:
    # A float16 would not hold the number to compare with.
    return bool(np.all((abs(array) < np.float64(BEYOND)) & (array == np.floor(array))))


def _as_text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def check_names(given: ArrayLike | Iterable[Any], size: int, what: str) -> Names:
    """Check that there is a name for each of `size` things, and none twice."""
    names = as_names(given)
    if len(names) != size:
        raise InputError(f"Expected {size} names in {what}, one for each, but got {len(names)}.")
    distinct, count = np.unique(names, return_counts=True)
    if len(distinct) < size:
        twice = distinct[count > 1]
        raise InputError(
            f"Expected each name once in {what}, but {len(twice)} stand there more than once: "
            f"{first_few(twice)}."
        )
    return names


def encode(names: Names) -> tuple[Codes, Names]:
    """Give numbers to names in the order in which they first appear.

    Returns
    -------
    codes : ndarray of shape (n,), int32
    vocabulary : ndarray of shape (n_distinct,)
    """
    if names.dtype == TEXT:
        # Sorting numpy's text takes several times as long as a dictionary does.
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
    """Give numbers to names by a given vocabulary; unknown names are an error that lists them."""
    codes = look_up(names, vocabulary)
    unknown = np.unique(names[codes < 0])
    if len(unknown):
        raise InputError(
            f"{len(unknown)} {what} not among those given: {first_few(unknown)}; "
            f"given were {first_few(vocabulary)}."
        )
    return codes


def look_up(names: Names, vocabulary: Names) -> Codes:
    """Give the code of each name, and -1 to those not in the vocabulary.

    Integers and text are compared as text, so that an item column of numbers in one file
    matches the same column read as text from another.
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


def as_text(names: Names) -> Names:
    """Give names as text: integers as their digits, text as it is."""
    return names if names.dtype == TEXT else np.array(list(map(str, names.tolist())), dtype=TEXT)


def in_order(names: Names) -> Names:
    """Sort names, each once: by value where all are numbers ("2" before "10"), else as text."""
    distinct = np.unique(names)
    if distinct.dtype != TEXT:
        return distinct
    try:
        values = np.array([float(name) for name in distinct.tolist()])
    except ValueError:
        return distinct
    if not np.all(np.isfinite(values)):
        return distinct
    return distinct[np.argsort(values, kind="stable")]
