"""Arrays of integer codes: checks, and the operations that a label table is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_matrix, csr_matrix

from annotrace.errors import InputError, count
from annotrace.labels.mapped_codes import map_large
from annotrace.labels.vocabulary import Codes

Repeats: TypeAlias = Literal["keep", "first", "last", "error"]
Seed: TypeAlias = int | np.random.Generator | None

BLOCK = 2**22
"""Labels that are worked on at a time where all at once would take several times their memory."""


def check_codes(values: ArrayLike, size: int, what: str, *, lowest: int = 0) -> Codes:
    """Check that codes are integers from `lowest` to size - 1, and return them as int32."""
    array = _as_integers(values, what)
    if array.size and (array.min() < lowest or array.max() >= size):
        row = int(np.flatnonzero((array < lowest) | (array >= size))[0])
        raise InputError(
            f"Expected `{what}` codes from {lowest} to {size - 1}, but entry {row} is {array[row]}."
        )
    # A writeable array may belong to the caller.
    return array.astype(np.int32, copy=array.flags.writeable)


def n_codes(values: ArrayLike, what: str) -> int:
    """Return one more than the largest code."""
    return int(_as_integers(values, what).max(initial=-1)) + 1


def _as_integers(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"Expected `{what}` to be integers in one dimension.") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"Expected `{what}` to be integers in one dimension, but got {array.dtype} "
            f"of shape {array.shape}."
        )
    return array if array.size else array.astype(np.int32)


def check_columns(columns: Sequence[ArrayLike], sizes: Mapping[str, int]) -> list[Codes]:
    """Check columns of codes against the sizes of their vocabularies, in order, by role."""
    checked = [
        check_codes(column, size, role)
        for column, (role, size) in zip(columns, sizes.items(), strict=True)
    ]
    lengths = [len(column) for column in checked]
    if len(set(lengths)) > 1:
        raise InputError(f"Expected columns of equal length, but got {lengths}.")
    return checked


def check_truth(values: ArrayLike, n_items: int, n_classes: int) -> Codes:
    """Check that there is a class, or -1, for each item, and return them as int32."""
    array = np.asarray(values)
    if array.shape != (n_items,):
        raise InputError(
            f"Expected `truth` to have one entry for each of {count(n_items, 'item')}, "
            f"but got shape {array.shape}."
        )
    return check_codes(array, n_classes, "truth", lowest=-1)


def sort_by_item(columns: list[Codes]) -> list[Codes]:
    """Sort columns by the first of them; the sort is stable."""
    item = columns[0]
    if np.all(item[1:] >= item[:-1]):
        return columns
    order = _stable_order(item)
    return [map_large(column[order]) for column in columns]


def _stable_order(item: Codes) -> NDArray[np.integer[Any]]:
    """Return the order that sorts codes; equal ones keep theirs.

    As rows of a sparse matrix with one label in each column: a counting sort.
    """
    n = len(item)
    index = np.int32 if n <= np.iinfo(np.int32).max else np.int64
    labels: Any = (np.ones(n, np.int8), item.astype(index), np.arange(n + 1, dtype=index))
    by_item = csc_matrix(labels, shape=(int(item.max()) + 1, n)).tocsr()
    order: NDArray[np.integer[Any]] = by_item.indices
    return order


def item_offsets(item: Codes, n_items: int) -> NDArray[np.int64]:
    """Return where the labels of each item start in sorted columns, shape (n_items + 1,)."""
    offsets = np.zeros(n_items + 1, np.int64)
    for start in range(0, len(item), BLOCK):
        part = item[start : start + BLOCK + 1]
        ends = start + 1 + np.flatnonzero(part[1:] != part[:-1])
        offsets[item[ends - 1] + 1] = ends
    offsets[item[-1:] + 1] = len(item)
    # An item without labels ends where the previous one does.
    return np.maximum.accumulate(offsets, out=offsets)


def count_codes(codes: Codes, size: int) -> NDArray[np.int64]:
    """Count each code, shape (size,), without a copy of all codes in 64 bits."""
    counts = np.zeros(size, np.int64)
    for start in range(0, len(codes), BLOCK):
        counts += np.bincount(codes[start : start + BLOCK], minlength=size)
    return counts


def item_blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    """Iterate over consecutive items and their labels, `BLOCK` labels or items at most.

    Parameters
    ----------
    offsets : ndarray of shape (n_items + 1,)
        The labels of item k are those from ``offsets[k]`` to ``offsets[k + 1]``. An item of more
        labels is a block of its own.

    Yields
    ------
    items, labels : slice
    """
    start, n_items = 0, len(offsets) - 1
    while start < n_items:
        full = int(np.searchsorted(offsets, offsets[start] + BLOCK, side="right")) - 1
        stop = min(max(full, start + 1), start + BLOCK, n_items)
        yield slice(start, stop), slice(int(offsets[start]), int(offsets[stop]))
        start = stop


def sort_within_items(
    offsets: NDArray[np.int64], annotator: Codes, label: Codes, n_classes: int
) -> tuple[Codes, Codes]:
    """Sort the labels of each item by annotator and class, in columns sorted by item.

    Sums over the labels of an item are then equal to the last bit, whatever the order of the rows
    of a table. Returns new arrays.

    Parameters
    ----------
    offsets : ndarray of shape (n_items + 1,)
        The labels of item k are those from ``offsets[k]`` to ``offsets[k + 1]``.
    annotator, label : ndarray of shape (n_labels,)
    n_classes : int
    """
    n_answers = (int(annotator.max(initial=0)) + 1) * n_classes
    # In int32, and as the columns of a sparse matrix, it takes a quarter of the time.
    index = np.int32 if max(n_answers, len(label)) <= np.iinfo(np.int32).max else np.int64
    answer = np.multiply(annotator, n_classes, dtype=index) + label
    by_item = csr_matrix(
        (annotator.copy(), answer, offsets.astype(index)), shape=(len(offsets) - 1, n_answers)
    )
    by_item.sort_indices()
    in_order = by_item.data
    return in_order, (by_item.indices - np.multiply(in_order, n_classes, dtype=index)).astype(
        np.int32, copy=False
    )


def labels_of(
    offsets: NDArray[np.int64], items: NDArray[np.int64]
) -> tuple[Codes, NDArray[np.int64]]:
    """Return the labels of some items in columns sorted by item, without a search.

    Parameters
    ----------
    offsets : ndarray of shape (n_items + 1,)
        The labels of item k are those from ``offsets[k]`` to ``offsets[k + 1]``.
    items : ndarray of shape (k,)

    Returns
    -------
    row : ndarray of shape (n,), int32
        The position in `items` of the item of each label.
    labels : ndarray of shape (n,), int64
        The positions of the labels in the columns.
    """
    counts = offsets[items + 1] - offsets[items]
    row = np.repeat(np.arange(len(items), dtype=np.int32), counts)
    start = np.repeat(offsets[items] - (np.cumsum(counts) - counts), counts)
    return row, start + np.arange(len(start))


def check_positions(selection: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return the positions that a mask or a selection without repeats selects."""
    array = np.asarray(selection)
    if array.dtype == bool:
        if array.shape != (size,):
            raise InputError(f"Expected a mask of shape ({size},), but got {array.shape}.")
        return np.flatnonzero(array)
    chosen = check_codes(array, size, "selection")
    if len(np.unique(chosen)) < len(chosen):
        raise InputError("Expected each code at most once in a selection.")
    return chosen.astype(np.int64)


def split_positions(
    n: int, fraction: float, random_state: Seed = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split positions 0 to n - 1 at random into the rest and a `fraction`, each sorted."""
    if not 0 <= fraction < 1:
        raise InputError(f"Expected `fraction` to be in [0, 1), but got {fraction}.")
    shuffled = np.random.default_rng(random_state).permutation(n)
    size = round(n * fraction)
    return np.sort(shuffled[size:]), np.sort(shuffled[:size])


def drop_repeats(
    item: Codes,
    annotator: Codes,
    repeats: Repeats,
    n_annotators: int,
    where: Callable[[int], str] = "label {}".format,
) -> NDArray[np.int64] | slice:
    """Return the rows to keep if annotators labelled items more than once, in order.

    `where` names a row in the error message of repeats="error".
    """
    if repeats == "keep":
        return slice(None)
    if repeats not in ("first", "last", "error"):
        raise InputError(
            f"Expected `repeats` to be 'keep', 'first', 'last' or 'error', but got {repeats!r}."
        )
    pair = item.astype(np.int64) * n_annotators + annotator
    if repeats == "last":
        _, backwards = np.unique(pair[::-1], return_index=True)
        return np.sort(len(pair) - 1 - backwards)
    _, first = np.unique(pair, return_index=True)
    if repeats == "error" and len(first) < len(pair):
        row = int(np.setdiff1d(np.arange(len(pair)), first)[0])
        repeated = count(len(pair) - len(first), "label repeats", "labels repeat")
        raise InputError(
            f"Expected each (item, annotator) pair at most once, but {repeated} one, first at "
            f"{where(row)}. Use repeats='keep', 'first' or 'last'."
        )
    return np.sort(first)
