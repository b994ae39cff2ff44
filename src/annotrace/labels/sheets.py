"""Sheets: named columns of a file or frame in the long or wide form, and the labels in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, first_few
from annotrace.labels.building import Columns
from annotrace.labels.columns import Layout
from annotrace.labels.vocabulary import Coded, Names, as_names, merge_vocabularies


@dataclass(frozen=True)
class Sheet:
    """Named columns of a file or frame.

    Attributes
    ----------
    source : str
        The file, or "the frame", for messages.
    columns : sequence of column names
    column : callable
        Returns an encoded column by its name.
    row_names : sequence, optional
        The number or name of each row in messages; counted from 0 by default.
    place : str
        The name of a cell in messages: a format with `row` and `column`.
    """

    source: str
    columns: Sequence[Any]
    column: Callable[[Any], Coded]
    row_names: Sequence[Any] | NDArray[np.int64] | None = None
    place: str = "row index {row}, column {column!r}"

    def cell(self, row: int, column: Any) -> str:
        """Return the name of a cell for messages."""
        name = row if self.row_names is None else self.row_names[row]
        return f"{self.source}, {self.place.format(row=name, column=column)}"


@dataclass(frozen=True)
class _StackedSheet(Sheet):
    """The rows of several sheets; each sheet names its own cells."""

    sheets: Sequence[Sheet] = ()
    starts: Sequence[int] = ()

    def cell(self, row: int, column: Any) -> str:
        """Return the name of a cell in the sheet that it comes from."""
        which = bisect_right(self.starts, row) - 1
        return self.sheets[which].cell(row - self.starts[which], column)


def stack_sheets(sheets: Sequence[Sheet]) -> Sheet:
    """Concatenate the rows of sheets with the same columns, in any order of columns."""
    first = sheets[0]
    if len(sheets) == 1:
        return first
    for sheet in sheets[1:]:
        if different := set(sheet.columns) ^ set(first.columns):
            raise InputError(
                f"{sheet.source} and {first.source} have different columns "
                f"({first_few(sorted(map(str, different)))} are in one of them only). Read them "
                "separately, or give them the same columns."
            )

    def column(name: Any) -> Coded:
        codes, names = merge_vocabularies([sheet.column(name) for sheet in sheets])
        return Coded(np.concatenate(codes), names)

    lengths = [len(sheet.column(first.columns[0]).codes) for sheet in sheets]
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return _StackedSheet(first.source, first.columns, column, sheets=sheets, starts=starts)


def labels_in_sheet(sheet: Sheet, layout: Layout) -> Columns:
    """Return the labels in a sheet whose columns have known roles."""
    if layout.wide:
        return _wide_columns(sheet, layout)
    item = sheet.column(layout.item)
    return Columns(
        sheet.source,
        item=item,
        annotator=sheet.column(layout.annotator).sorted(),
        label=sheet.column(layout.label),
        where=lambda row, role: sheet.cell(row, getattr(layout, role)),
        truth=None if layout.truth is None else sheet.column(layout.truth),
        truth_item=item.codes,
    )


def _wide_columns(sheet: Sheet, layout: Layout) -> Columns:
    codes, names = merge_vocabularies([sheet.column(name) for name in layout.answers])
    named = {"item": layout.item, "truth": layout.truth}
    return melt(
        Coded(np.stack(codes, axis=1).ravel(), names),
        sheet.column(layout.item),
        as_names([str(name) for name in layout.answers]),
        None if layout.truth is None else sheet.column(layout.truth),
        lambda row, role, column: sheet.cell(row, named.get(role, layout.answers[column])),
        sheet.source,
    )


def melt(
    cells: Coded,
    item: Coded,
    annotators: Names,
    truth: Coded | None,
    where: Callable[[int, str, int], str],
    source: str,
) -> Columns:
    """Convert cells, row by row, from the wide to the long form without empty cells.

    Parameters
    ----------
    cells : Coded of n_items * n_annotators cells
    item, truth : Coded of n_items rows
    annotators : ndarray of shape (n_annotators,)
    where : callable
        Names the cell of a row, a role and a column for messages.
    source : str
    """
    unnamed = np.flatnonzero(item.codes < 0)
    if len(unnamed):
        raise InputError(f"{where(int(unnamed[0]), 'item', 0)} is empty. Every row needs an item.")
    filled = np.flatnonzero(cells.codes >= 0)
    row, annotator = np.divmod(filled, max(len(annotators), 1))
    return Columns(
        source,
        item=item.take(row),
        annotator=Coded(annotator.astype(np.int32), annotators),
        label=cells.take(filled),
        where=lambda k, role: (
            where(k, role, 0) if role == "truth" else where(int(row[k]), role, int(annotator[k]))
        ),
        truth=truth,
        truth_item=item.codes,
    )
