"""Sheets: named columns of a file or frame in the long or wide form, and the labels in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from annotrace.errors import InputError, first_few
from annotrace.labels.building import Columns
from annotrace.labels.columns import Layout
from annotrace.labels.text_coding import encode_series, encode_texts
from annotrace.labels.vocabulary import Coded, Names, as_names, merge_vocabularies
from annotrace.progress import StageParts

COLUMNS_AT_ONCE = 2
"""Columns that are encoded at the same time: polars encodes one column by one thread."""


@dataclass(frozen=True)
class Sheet:
    """Named columns of a file or frame.

    Attributes
    ----------
    source : str
        The file, or "the frame", for messages.
    column : callable
        Returns an encoded column by its name.
    name_cell : callable or None
        Names the cell of a row and column for messages; by default by its index.
    texts : callable or None
        Returns an iterator of the parts of a column by its name, polars series of text, or None if
        the column is not text.
    """

    source: str
    columns: Sequence[Any]
    column: Callable[[Any], Coded]
    name_cell: Callable[[int, Any], str] | None = None
    texts: Callable[[Any], Iterator[Any] | None] | None = None

    def cell(self, row: int, column: Any) -> str:
        """Return the name of a cell for messages."""
        if self.name_cell is None:
            return f"{self.source}, row index {row}, column {column!r}"
        return self.name_cell(row, column)


def frame_sheet(frame: Any, source: str) -> Sheet:
    """Return a frame of any library that narwhals supports as a sheet."""
    import narwhals as nw

    known = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        raise InputError(
            "Expected a pandas, polars or pyarrow frame or a dict of columns, but got "
            f"{type(frame).__name__}."
        )
    return Sheet(source, known.columns, lambda name: encode_series(known.get_column(name)))


def with_cache(sheet: Sheet) -> Sheet:
    """Return a sheet that encodes each column only once."""
    return replace(sheet, column=cache(sheet.column))


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

    # Of most tables three columns are read: items, annotators and labels.
    progress = StageParts("Reading labels, column of a file", 3 * len(sheets))

    def texts(name: Any) -> Iterator[Any] | None:
        parts = [sheet.texts(name) if sheet.texts else None for sheet in sheets]
        known = [part for part in parts if part is not None]
        return _reported(known, progress) if len(known) == len(sheets) else None

    def column(name: Any) -> Coded:
        if (parts := texts(name)) is not None:
            return encode_texts(parts)
        codes, names = merge_vocabularies([sheet.column(name) for sheet in sheets])
        return Coded(np.concatenate(codes), names)

    def cell(row: int, name: Any) -> str:
        # Only a message needs the rows of each file.
        lengths = [len(sheet.column(name).codes) for sheet in sheets]
        starts = np.cumsum([0, *lengths[:-1]]).tolist()
        which = bisect_right(starts, row) - 1
        return sheets[which].cell(row - starts[which], name)

    return Sheet(first.source, first.columns, column, cell, texts)


def _reported(files: Sequence[Iterator[Any]], progress: StageParts) -> Iterator[Any]:
    """Iterate over the parts of a column in several files, and report each file that is read."""
    for parts in files:
        yield from parts
        progress.finish_one()


def labels_in_sheet(sheet: Sheet, layout: Layout) -> Columns:
    """Return the labels in a sheet whose columns have known roles."""
    if layout.wide:
        return _wide_columns(sheet, layout)
    names = [layout.item, layout.annotator, layout.label]
    with ThreadPoolExecutor(COLUMNS_AT_ONCE) as threads:
        # Each thread reports its progress to the listener of this one.
        columns = [
            threads.submit(copy_context().run, sheet.column, name)
            for name in names
            if name is not None
        ]
        for column in columns:
            column.result()
    item = sheet.column(layout.item)
    if layout.annotator_name is None:
        annotator = sheet.column(layout.annotator).sorted()
    else:
        annotator = Coded(np.zeros_like(item.codes), as_names([layout.annotator_name]))
    return Columns(
        sheet.source,
        item=item,
        annotator=annotator,
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
    """Convert n_items x n_annotators cells, row by row, to the long form without empty cells.

    `where` names the cell of a row, a role and a column for messages.
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
