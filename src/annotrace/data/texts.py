"""Texts and pairs of texts as items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.data.ngrams import count_ngrams
from annotrace.errors import InputError
from annotrace.labels.columns import find_column
from annotrace.labels.frames import is_frame
from annotrace.labels.vocabulary import Names, check_names, is_filled

PAIR = 2
FIRST_ROWS = 20


class TextSource:
    """Texts, or pairs of texts such as a premise and a hypothesis.

    Parameters
    ----------
    texts : sequence of str of shape (n_items,), or array-like of str of shape (n_items, 1 or 2)
    items : array-like of shape (n_items,), optional
        Names of the texts; by default they have only positions.
    source : str
        The name of the texts in messages.
    columns : sequence of str, optional
        The columns that the texts come from, one or two.

    Attributes
    ----------
    texts : ndarray of str, shape (n_items, 1 or 2)
    shape : (1,) or (2,)
        Texts per item.

    Examples
    --------
    >>> TextSource(["a fine film", "dull"])
    TextSource(2 texts)
    """

    def __init__(
        self,
        texts: Any,
        items: ArrayLike | Iterable[Any] | None = None,
        *,
        source: str = "X",
        columns: Sequence[str] | None = None,
    ) -> None:
        self.columns = None if columns is None else list(columns)
        self.texts = _as_texts(texts, source)
        self.items: Names | None = None
        if items is not None:
            self.items = check_names(items, len(self.texts), f"items of {source}")
        _check_text(self.texts, self.items, source)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item."""
        return self.texts.shape[1:]

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"TextSource({len(self):,} {'texts' if self.shape == (1,) else 'pairs of texts'})"

    def load(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return some texts, shape (n_positions, 1 or 2)."""
        return self.texts[positions]

    @cached_property
    def ngrams(self) -> Any:
        """Counts of n-grams, a sparse matrix; see `annotrace.data.ngrams`."""
        return count_ngrams(self.texts)


def is_texts(X: Any) -> bool:
    """Whether X is a sequence, array or column of texts or of pairs of texts, or a frame of them.

    The first rows decide; an array or frame with more than two columns is never texts.
    """
    if is_frame(X):
        return _is_frame_of_texts(X)
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__getitem__"):
        return False
    if hasattr(X, "toarray"):  # Sparse; see scikit-learn's message.
        return False
    if isinstance(X, np.ndarray) and (X.dtype.kind not in "OUT" or not 1 <= X.ndim <= PAIR):
        return False
    return _are_texts(_as_list(X[:FIRST_ROWS]))


def texts_from_frame(
    frame: Any, items: ArrayLike | Iterable[Any] | None = None, *, source: str = "the frame"
) -> TextSource:
    """Convert a frame of one or two columns of texts, and optionally an item column."""
    known, columns, item = _text_columns(frame, named=items is None)
    texts = [known.get_column(name).to_list() for name in columns]
    names = known.get_column(item).to_list() if item is not None else items
    rows = np.empty((len(known), len(columns)), dtype=object)
    for place, column in enumerate(texts):
        rows[:, place] = column
    return TextSource(rows, names, source=source, columns=columns)


def _text_columns(frame: Any, named: bool) -> tuple[Any, list[str], str | None]:
    import narwhals as nw

    known: Any = nw.from_native(frame, eager_only=True)
    columns = list(known.columns)
    item = find_column(columns, "item", "the frame") if named and len(columns) > 1 else None
    return known, [name for name in columns if name != item], item


def _is_frame_of_texts(frame: Any) -> bool:
    import narwhals as nw

    if not isinstance(nw.from_native(frame, eager_only=True, pass_through=True), nw.DataFrame):
        return False
    known, columns, _ = _text_columns(frame, named=True)
    some = known.head(FIRST_ROWS)
    return 1 <= len(columns) <= PAIR and all(
        _are_texts(some.get_column(name).to_list()) for name in columns
    )


def _are_texts(rows: list[Any]) -> bool:
    """Whether rows are texts, or one or two texts each; some may be missing."""
    filled = [row for row in rows if is_filled(row)]
    return bool(filled) and all(isinstance(row, str) or _is_row_of_texts(row) for row in filled)


def _is_row_of_texts(row: Any) -> bool:
    return _is_row(row) and 1 <= len(row) <= PAIR and all(isinstance(text, str) for text in row)


def _is_row(row: Any) -> bool:
    return isinstance(row, tuple | list | np.ndarray)


def _as_list(values: Any) -> list[Any]:
    """Return a sequence, array or column of any library as a list of Python objects."""
    convert = next((n for n in ("to_pylist", "to_list", "tolist") if hasattr(values, n)), None)
    return list(values) if convert is None else list(getattr(values, convert)())


def _as_texts(texts: Any, source: str) -> NDArray[Any]:
    """Return texts as an array of objects of shape (n_items, 1 or 2), not yet checked."""
    listed = [tuple(row) if _is_row(row) else (row,) for row in _as_list(texts)]
    lengths = sorted({len(row) for row in listed})
    if len(lengths) > 1 or (lengths and not 1 <= lengths[0] <= PAIR):
        raise InputError(
            f"Expected {source} to be one text per item, or two, but got {lengths} of them."
        )
    rows = np.empty((len(listed), lengths[0] if lengths else 1), dtype=object)
    for place, row in enumerate(listed):
        rows[place] = row
    return rows


def _check_text(texts: NDArray[Any], items: Names | None, source: str) -> None:
    for row, column in np.ndindex(texts.shape):
        text: Any = texts[row, column]
        if not isinstance(text, str):
            item = "" if items is None else f" (item {str(items[row])!r})"
            raise InputError(
                f"{source}, row index {row}{item}: expected text, but got "
                f"{type(text).__name__} ({str(text)[:60]!r}). Use '' if the text is empty, or "
                "remove the item."
            )
