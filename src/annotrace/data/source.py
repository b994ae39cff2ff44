"""Item sources: the items to train on, loaded batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.data.texts import TextSource, is_texts, texts_from_frame
from annotrace.errors import InputError
from annotrace.labels.columns import find_column
from annotrace.labels.frames import is_frame
from annotrace.labels.vocabulary import Names, check_names

MAX_FLOAT32 = np.float64(np.finfo(np.float32).max)


@runtime_checkable
class ItemSource(Protocol):
    """Items that can be loaded by position."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item: (64,), (28, 28) or (32, 32, 3)."""

    @property
    def items(self) -> Names | None:
        """Names of the items, shape (n_items,), or None if rows have only positions."""

    def __len__(self) -> int: ...

    def load(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Load some items in their stored dtype, shape (n_positions, *shape)."""


def is_source(X: Any) -> TypeGuard[ItemSource]:
    """Whether X is an item source."""
    # Columns of a pandas frame are attributes; one may be named load.
    return hasattr(type(X), "load") and isinstance(X, ItemSource)


class ArraySource:
    """An array in its own dtype: uint8 images stay uint8 until a batch is made.

    Parameters
    ----------
    X : array-like of numbers, shape (n_items, ...)
    items : array-like of shape (n_items,), optional
        Names of the rows; by default rows have only positions.
    source : str
        The name of the array in messages.
    columns : sequence, optional
        Names of the columns of a two-dimensional array.

    Attributes
    ----------
    skipped : ndarray of shape (n_skipped,)
        Names of items that were left out because their images cannot be read; `fit` leaves out
        their labels.
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
        self.items: Names | None = None
        self.skipped: Names = np.empty(0, np.str_)
        if items is not None:
            self.items = check_names(items, len(self.X), f"items of {source}")
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
    """Convert features to an item source.

    Parameters
    ----------
    X : ItemSource, array of shape (n_items, ...), texts, or pandas, polars or pyarrow frame
        Texts are a sequence or column of them, or pairs of them. The item column of a frame is
        detected by its name (item, image, id, ...) unless `items` is given; the other columns must
        be numbers, or one or two columns of texts.
    items : array-like of shape (n_items,), optional
        The name of each row.
    """
    if is_source(X):
        if items is not None:
            raise InputError(
                f"`items` is for arrays and frames, but {type(X).__name__} names its own items."
            )
        return X
    if is_texts(X):
        return texts_from_frame(X, items) if is_frame(X) else TextSource(X, items)
    if is_frame(X):
        return source_from_frame(X, items)
    return ArraySource(X, items)


def source_from_frame(
    frame: Any,
    items: ArrayLike | Iterable[Any] | None = None,
    *,
    item: str | None = None,
    source: str = "the frame",
) -> ArraySource:
    """Convert a frame with an item column to a source, as in `as_source`.

    `item` names the column; if there is no such column, it is detected by its name.
    """
    import narwhals as nw

    known = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        raise InputError(
            f"Expected an array, or a pandas, polars or pyarrow frame, but got "
            f"{type(frame).__name__}{': collect it first.' if hasattr(frame, 'collect') else '.'}"
        )
    features = list(known.columns)
    given = item if item in features else None
    if items is None and (name := find_column(features, "item", source, given)) is not None:
        features.remove(name)
        items = _item_names(known.get_column(name), source)
    if not features:
        raise InputError(f"{source} has no feature columns; it has {known.columns}.")
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
    """Convert a column of numbers, or of lists of numbers of equal length, to an array."""
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Array):
        return np.asarray(series.to_numpy())
    if series.dtype == nw.List:
        return _stack_lists(series, source)
    raise InputError(
        f"{source}, column {series.name!r} has type {series.dtype}, but features must be numbers. "
        "Convert it to numbers or drop it; to learn from texts, pass only their column."
    )


def _stack_lists(series: Any, source: str) -> NDArray[Any]:
    lengths = series.list.len().unique().to_list()
    if len(lengths) != 1 or lengths[0] is None:
        raise InputError(
            f"{source}, column {series.name!r}: expected lists of equal length, but got {lengths}."
        )
    if series.implementation.is_polars():
        return np.asarray(series.to_native().list.to_array(lengths[0]).to_numpy())
    return np.asarray(series.to_list())


def _column_names(column: Any, block: NDArray[Any]) -> list[Any]:
    """Return the feature names of a column: its name, or one name per entry of its lists."""
    if block.ndim == 1:
        return [column]
    return [f"{column}[{index}]" for index in range(int(np.prod(block.shape[1:])))]


def _check_numbers(X: NDArray[Any], source: str) -> None:
    if X.dtype.kind not in "biuf":
        raise InputError(
            f"Expected {source} to be numbers, but got {X.dtype}. Convert it to float32 or uint8."
        )
    if X.ndim < 2:
        raise InputError(
            f"Expected {source} to have one row per item and at least one more dimension, but got "
            f"shape {X.shape}. Use X.reshape(-1, 1) for a single feature."
        )
    if 0 in X.shape[1:]:
        raise InputError(
            f"Expected {source} to have at least one feature, but got shape {X.shape}."
        )


def _check_finite(
    X: NDArray[Any], items: Names | None, source: str, columns: Sequence[Any] | None
) -> None:
    # The minimum and maximum need no mask of the size of the array.
    if X.dtype.kind != "f" or X.size == 0 or (X.min() >= -MAX_FLOAT32 and X.max() <= MAX_FLOAT32):
        return
    row, *place = map(int, np.argwhere(~(abs(X) <= MAX_FLOAT32))[0])
    column = repr(columns[place[0]]) if columns is not None else ", ".join(map(str, place))
    item = "" if items is None else f" (item {str(items[row])!r})"
    value = X[(row, *place)]
    remedy = (
        "It exceeds float32: divide the column by its largest value."
        if np.isfinite(value)
        else "Impute values that are NaN or infinite, or remove the item."
    )
    raise InputError(f"{source}, row index {row}{item}, column {column} is {value}. {remedy}")
