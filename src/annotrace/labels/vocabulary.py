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


def as_names(values: ArrayLike | Iterable[Any]) -> Names:
    """Turn values into names: integers as they are, whole floats as integers, the rest as text.

    Parameters
    ----------
    values : array-like of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
        Of an integer dtype or of `TEXT`.
    """
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values))  # type: ignore[arg-type]
    if array.ndim != 1:
        raise InputError(f"Expected names in one dimension, but got an array of {array.shape}.")
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f" and bool(np.all(np.isfinite(array) & (array == np.floor(array)))):
        return array.astype(np.int64)
    if array.dtype.kind in "OfbSU" or array.dtype == TEXT:
        return np.array([_as_text(value) for value in array.tolist()], dtype=TEXT)
    raise InputError(f"Names must be text or integers, but got values of type {array.dtype}.")


def _as_text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def encode(names: Names) -> tuple[Codes, Names]:
    """Give numbers to names in the order in which they first appear.

    Returns
    -------
    codes : ndarray of shape (n,), int32
    vocabulary : ndarray of shape (n_distinct,)
    """
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
    if (names.dtype == TEXT) != (vocabulary.dtype == TEXT):
        names, vocabulary = _text(names), _text(vocabulary)
    if len(vocabulary) == 0:
        return np.full(len(names), -1, np.int32)
    order = np.argsort(vocabulary, kind="stable")
    place = np.searchsorted(vocabulary[order], names).clip(max=len(vocabulary) - 1)
    codes: Codes = order[place].astype(np.int32)
    codes[vocabulary[codes] != names] = -1
    return codes


def _text(names: Names) -> Names:
    return names if names.dtype == TEXT else np.array(list(map(str, names.tolist())), dtype=TEXT)


def sorted_classes(names: Names) -> Names:
    """Order class names: by value where all are numbers ("2" before "10"), else alphabetically."""
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
