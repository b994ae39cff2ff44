"""What training reads from: items in order, loaded a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError
from annotrace.labels.columns import find_column
from annotrace.labels.vocabulary import Names, check_names

LARGEST = np.float64(np.finfo(np.float32).max)


@runtime_checkable
class ItemSource(Protocol):
    """Items that can be loaded by position."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item: (64,), (28, 28) or (32, 32, 3)."""

    @property
    def items(self) -> Names | None:
        """Names of the items, shape (n_items,), or None where position is all there is."""

    def __len__(self) -> int: ...

    def load(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Load some items in their stored dtype, shape (n_positions, *shape)."""


def is_source(X: Any) -> TypeGuard[ItemSource]:
    """Tell a source from whatever else a caller may have."""
    # Of a pandas frame, columns are attributes: one named load would make it a source.
    return hasattr(type(X), "load") and isinstance(X, ItemSource)


class ArraySource:
    """An array held as it is: uint8 images stay uint8 until the batch.

    Parameters
    ----------
    X : array-like of numbers, shape (n_items, ...)
    items : array-like of shape (n_items,), optional
        Names of the rows; without them rows are positions.
    source : str
        What to call the array in a message.
    columns : sequence, optional
        Names of the columns of a two-dimensional array.
    """

    def __init__(
        self,
        X: ArrayLike,
        items: ArrayLike | Iterable[Any] | None = None,
        *,
        source: str = "X",
        columns: Sequence[Any] | None = None,
    ) -> None:
        self.X = np.asarray(X)
        self.columns = None if columns is None else list(columns)
        _check_numbers(self.X, source)
        self.items = (
            None if items is None else check_names(items, len(self.X), f"items of {source}")
        )
        _check_finite(self.X, self.items, source, self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item."""
        return self.X.shape[1:]

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return f"ArraySource({len(self):,} items of shape {self.shape}, {self.X.dtype})"

    def load(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Load some items, shape (n_positions, *shape)."""
        return self.X[positions]


def as_source(X: Any, items: ArrayLike | Iterable[Any] | None = None) -> ItemSource:
    """Make a source of whatever the caller has.

    Parameters
    ----------
    X : ItemSource, array of shape (n_items, ...), or pandas, polars or pyarrow frame
        The item column of a frame is found by its name (item, image, id, ...) unless `items` is
        given; its other columns must be numbers.
    items : array-like of shape (n_items,), optional
        The name of each row.
    """
    if is_source(X):
        if items is not None:
            raise InputError(
                f"`items` is for arrays and frames; a {type(X).__name__} names its own."
            )
        return X
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return source_from_frame(X, items)
    return ArraySource(X, items)


def source_from_frame(
    frame: Any,
    items: ArrayLike | Iterable[Any] | None = None,
    *,
    item: str | None = None,
    source: str = "the frame",
) -> ArraySource:
    """Make a source of a frame with an item column, as in `as_source`.

    `item` names the column; where there is none of that name it is found by the usual ones.
    """
    import narwhals as nw

    known = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        raise InputError(
            f"Expected an array, or a frame of pandas, polars or pyarrow, but got "
            f"{type(frame).__name__}{': collect it first.' if hasattr(frame, 'collect') else '.'}"
        )
    features = list(known.columns)
    given = item if item in features else None
    if items is None and (name := find_column(features, "item", source, given)) is not None:
        features.remove(name)
        items = _item_names(known.get_column(name), source)
    if not features:
        raise InputError(f"{source} has no columns of features; it has {known.columns}.")
    blocks = [_as_numbers(known.get_column(name), source) for name in features]
    if len(blocks) == 1 and blocks[0].ndim > 1:
        return ArraySource(blocks[0], items, source=source)
    named = zip(features, blocks, strict=True)
    names = [name for column, block in named for name in _column_names(column, block)]
    X = np.concatenate([block.reshape(len(block), -1) for block in blocks], axis=1)
    return ArraySource(X, items, source=source, columns=names)


def _item_names(series: Any, source: str) -> list[Any]:
    if series.is_null().any():
        row = int(np.argmax(series.is_null().to_numpy()))
        raise InputError(f"{source}, row index {row}, column {series.name!r} is empty.")
    names: list[Any] = series.to_list()
    return names


def _as_numbers(series: Any, source: str) -> NDArray[Any]:
    """Give a column of numbers, or of lists of numbers of one length, as an array."""
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.to_numpy())
    if series.dtype in (nw.List, nw.Array):
        return _stack_lists(series, source)
    raise InputError(
        f"{source}, column {series.name!r} holds {series.dtype}, and features must be numbers. "
        "Turn it into numbers or drop it."
    )


def _stack_lists(series: Any, source: str) -> NDArray[Any]:
    import narwhals as nw

    if series.dtype == nw.Array:
        return np.asarray(series.to_numpy())
    lengths = series.list.len().unique().to_list()
    if len(lengths) != 1 or lengths[0] is None:
        raise InputError(
            f"{source}, column {series.name!r}: its lists must have one length, but have {lengths}."
        )
    if series.implementation.is_polars():
        return np.asarray(series.to_native().list.to_array(lengths[0]).to_numpy())
    return np.asarray(series.to_list())


def _column_names(column: Any, block: NDArray[Any]) -> list[Any]:
    """Name what a column holds in each row: one number, or several with their places."""
    if block.ndim == 1:
        return [column]
    return [f"{column}[{place}]" for place in range(int(np.prod(block.shape[1:])))]


def _check_numbers(X: NDArray[Any], source: str) -> None:
    if X.dtype.kind not in "biuf":
        raise InputError(
            f"{source} must be numbers, but holds {X.dtype}. Turn it into float32 or uint8."
        )
    if X.ndim < 2:
        raise InputError(
            f"{source} must have a row an item and at least one more dimension, but has shape "
            f"{X.shape}. Use X.reshape(-1, 1) for one feature."
        )
    if 0 in X.shape[1:]:
        raise InputError(f"{source} has shape {X.shape}: items without a single feature.")


def _check_finite(
    X: NDArray[Any], items: Names | None, source: str, columns: Sequence[Any] | None
) -> None:
    # The least and the largest tell without a mask as large as the array.
    if X.dtype.kind != "f" or X.size == 0 or (X.min() >= -LARGEST and X.max() <= LARGEST):
        return
    row, *place = map(int, np.argwhere(~(abs(X) <= LARGEST))[0])
    column = repr(columns[place[0]]) if columns is not None else ", ".join(map(str, place))
    item = "" if items is None else f" (item {str(items[row])!r})"
    value = X[(row, *place)]
    remedy = (
        "Networks take float32: divide the column by its largest value."
        if np.isfinite(value)
        else "Fill in what is missing or leave the item out."
    )
    raise InputError(f"{source}, row index {row}{item}, column {column} is {value}. {remedy}")
