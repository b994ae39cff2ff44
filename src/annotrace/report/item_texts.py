"""Texts of items, shortened for a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from annotrace.errors import InputError, first_few
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import Names, look_up

if TYPE_CHECKING:
    from annotrace.data import TextSource

SHORT = 200
"""Characters of a text that a table shows; the rest is shown on request."""

LONGEST = 10_000
"""Characters of a text that a page holds: it has up to 400 texts."""


class ShownText(NamedTuple):
    """A text in a table.

    Attributes
    ----------
    short : str
        The beginning.
    full : str
        The text, cut at `LONGEST`; "" if it is short.
    n_left_out : int
        Characters that the page does not hold.
    """

    short: str
    full: str
    n_left_out: int


# From the code of an item to its texts: none, one, or two of a pair.
Texts: TypeAlias = Callable[[int], list[ShownText]]


def texts_of(texts: Any, table: LabelTable) -> Texts:
    """Return a function from items to their texts.

    Parameters
    ----------
    texts : None, TextSource, sequence of texts or of pairs of texts, or frame
        With names, as in the item column of a frame, they are matched by name; otherwise they have
        the items in the order of the table, which is that of `X` in `fit`.
    table : LabelTable
    """
    if texts is None:
        return lambda item: []
    from annotrace.data import TextSource, as_source

    source = as_source(texts)
    if not isinstance(source, TextSource):
        raise InputError(f"Expected `texts` to be texts, but got {type(texts).__name__}.")
    if source.items is not None and not table.positional:
        return _by_name(source, source.items, table)
    if len(source) != table.n_items:
        raise InputError(
            f"Expected `texts` with one for each of {table.n_items:,} items, but got "
            f"{len(source):,}."
        )
    return lambda item: [shorten(text) for text in source.texts[item]]


def _by_name(source: TextSource, names: Names, table: LabelTable) -> Texts:
    place = look_up(table.items, names)
    if table.n_items and (place < 0).all():
        raise InputError(
            f"None of the {table.n_items:,} items has a text: the names of the texts "
            f"({first_few(names, 1)}) are not those of the items ({first_few(table.items, 1)})."
        )

    def texts(item: int) -> list[ShownText]:
        row = place[item]
        return [shorten(text) for text in source.texts[row]] if row >= 0 else []

    return texts


def shorten(text: str) -> ShownText:
    """Cut a text for a table, at a space if there is one near."""
    if len(text) <= SHORT:
        return ShownText(text, "", 0)
    start = text[: SHORT - 1]
    space = start.rfind(" ", SHORT // 2)
    short = f"{start if space < 0 else start[:space]}…"
    return ShownText(short, text[:LONGEST], max(len(text) - LONGEST, 0))
