"""Text in csv and tsv files that a spreadsheet would take for a formula.

A spreadsheet evaluates a cell that begins with =, +, -, @, a tab or a carriage return, and a
formula can open files and web pages. Such text is written with a quote (') in front, which is how
the user of a spreadsheet marks text. Numbers such as -1 are harmless and stay as they are. One more
quote is put before text that already looks guarded, so that reading removes exactly what writing
has added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_FORMULA = r"^('*[=+\-@\t\r])"
_GUARDED = r"^'('*[=+\-@\t\r])"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def guard_frame(frame: Any) -> Any:
    """Guard the text of a polars frame, column names included."""
    guarded = _map_texts(_guard, frame)
    guarded.columns = _map_names(_guard, frame.columns)
    return guarded


def unguard_texts(frame: Any) -> Any:
    """Return the text of a polars frame as it was before `guard_frame`, under the same names."""
    return _map_texts(_unguard, frame)


def unguard_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns as they were before `guard_frame`.

    >>> unguard_names(["'=A1", "''=A1", "'quoted'"])
    ['=A1', "'=A1", "'quoted'"]
    """
    return _map_names(_unguard, names)


def _guard(texts: Any) -> Any:
    # To search is several times faster than to replace.
    if not texts.str.contains(_FORMULA).any():
        return texts
    is_number = texts.str.contains(_NUMBER)
    return texts.zip_with(is_number, texts.str.replace(_FORMULA, "'$1"))


def _unguard(texts: Any) -> Any:
    # To compare the first character is several times faster than to search a pattern.
    if not texts.str.starts_with("'").any():
        return texts
    return texts.str.replace(_GUARDED, "$1")


def _map_texts(change: Callable[[Any], Any], frame: Any) -> Any:
    import polars as pl

    # Polars takes the name of a series such as "^a.*$" for a pattern.
    return frame.with_columns(
        change(column.alias("text")).alias(column.name)
        for column in frame.iter_columns()
        if column.dtype == pl.String
    )


def _map_names(change: Callable[[Any], Any], names: Sequence[str]) -> list[str]:
    import polars as pl

    changed: list[str] = change(pl.Series(names, dtype=pl.String)).to_list()
    return changed
