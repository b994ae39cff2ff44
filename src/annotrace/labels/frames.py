"""Tables from frames, dicts of columns and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.building import Columns, build_table
from annotrace.labels.codes import Choices
from annotrace.labels.coding import (
    Coded,
    as_answers,
    encode_answers,
    encode_series,
    encode_values,
    merge,
)
from annotrace.labels.columns import (
    Layout,
    Named,
    check_distinct,
    column_names,
    find_column,
    find_layout,
)
from annotrace.labels.formats.argilla import ARGILLA, is_flat
from annotrace.labels.formats.documents import Document, frame_rows, plain
from annotrace.labels.hugging_face import frame_of_dataset, is_dataset
from annotrace.labels.importing import Request, import_answers
from annotrace.labels.libraries import library_of
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import TEXT, Codes, Names, as_names, check_names


@dataclass(frozen=True)
class Sheet:
    """Named columns of a file or frame, and how its rows are called in a message.

    Attributes
    ----------
    source : str
        The file, or "the frame".
    columns : sequence of column names
    column : callable
        Gives the codes of a column by its name.
    numbers : sequence, optional
        The number or name of each row; counted from 0 unless given.
    place : str
        How a cell is named: a format with `row` and `column`.
    """

    source: str
    columns: Sequence[Any]
    column: Callable[[Any], Coded]
    numbers: Sequence[Any] | NDArray[np.int64] | None = None
    place: str = "row index {row}, column {column!r}"

    def cell(self, row: int, column: Any) -> str:
        """Name a cell for a message."""
        number = row if self.numbers is None else self.numbers[row]
        return f"{self.source}, {self.place.format(row=number, column=column)}"


def table_from_long(frame: Any, named: Named, choices: Choices) -> LabelTable:
    """Make a table of a frame or dict of columns; see `LabelTable.from_long`."""
    sheet = sheet_from_frame(frame)
    if is_flat(sheet.columns):
        return giving_frames_like(_table_from_responses(frame, named, choices), frame)
    layout = find_layout(sheet.columns, named, sheet.source)
    if layout.wide:
        raise InputError(
            f"{sheet.source} has an item column {layout.item!r} but none for the annotator and the "
            "label. Name them with annotator= and label=, or use from_wide if there is a column "
            "for each annotator."
        )
    return giving_frames_like(table_from_sheet(sheet, layout, choices), frame)


def table_from_wide(
    answers: Any,
    named: Named,
    choices: Choices,
    *,
    items: Sequence[Any] | None = None,
    annotators: Sequence[Any] | None = None,
) -> LabelTable:
    """Make a table of an array or frame of answers; see `LabelTable.from_wide`."""
    if not isinstance(answers, Mapping) and not _is_frame(answers):
        return _table_from_array(_as_array(answers), choices, items, annotators)
    if items is not None or annotators is not None:
        raise InputError(
            "`items` and `annotators` name an array's rows and columns, not a frame's."
        )
    sheet = sheet_from_frame(_with_index(answers, named))
    layout = find_layout(sheet.columns, named, sheet.source)
    if not layout.wide:
        raise InputError(
            f"{sheet.source} has columns {layout.item!r}, {layout.annotator!r} and "
            f"{layout.label!r}: a row a label. Use from_long."
        )
    return giving_frames_like(table_from_sheet(sheet, layout, choices), answers)


def _as_array(answers: Any) -> NDArray[Any]:
    try:
        return as_answers(answers)
    except ValueError:
        raise InputError(
            "Expected rows of one length, an entry for each annotator (None where there is no "
            "label), but they differ."
        ) from None


def _table_from_array(
    array: NDArray[Any],
    choices: Choices,
    items: Sequence[Any] | None,
    annotators: Sequence[Any] | None,
) -> LabelTable:
    cells = encode_answers(array, "the array")
    n_items, n_annotators = array.shape
    return table_from_cells(
        cells,
        choices,
        items=None if items is None else check_names(items, n_items, "`items`"),
        annotators=check_names(
            range(n_annotators) if annotators is None else annotators, n_annotators, "`annotators`"
        ),
    )


def table_from_sheet(sheet: Sheet, layout: Layout, choices: Choices) -> LabelTable:
    """Make a table of a sheet whose columns are known."""
    columns = _wide_columns(sheet, layout) if layout.wide else _long_columns(sheet, layout)
    return build_table(columns, choices, sheet.source)


def table_from_cells(
    cells: Coded,
    choices: Choices,
    *,
    items: Names | None,
    annotators: Names,
    truth: Coded | None = None,
    source: str = "the array",
) -> LabelTable:
    """Make a table of the cells of an array of shape (n_items, n_annotators), row by row.

    `truth` has a row an item. Without names for the items they are positions.
    """
    n_items = len(cells.codes) // max(len(annotators), 1)
    rows = np.arange(n_items, dtype=np.int32)
    columns = _melt(
        cells,
        Coded(rows, rows if items is None else items),
        annotators,
        lambda row, role, column: (
            f"{source}, {'truth' if role == 'truth' else 'row'} index {row}"
            + ("" if role == "truth" else f", column index {column}")
        ),
        truth,
    )
    return build_table(columns, choices, source, positional=items is None)


def sheet_from_frame(frame: Any) -> Sheet:
    """Make a sheet of a dict of columns, or of anything that narwhals knows."""
    if is_dataset(frame):
        frame = frame_of_dataset(frame)
    if isinstance(frame, Mapping):
        _check_lengths(frame)
        return Sheet("the dict", list(frame), lambda name: encode_values(frame[name]))
    import narwhals as nw

    check_distinct(column_names(frame), "the frame")
    known = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        raise InputError(
            "Expected a pandas, polars or pyarrow frame or a dict of columns, but got "
            f"{type(frame).__name__}."
        )
    return Sheet("the frame", known.columns, lambda name: encode_series(known.get_column(name)))


def giving_frames_like(table: LabelTable, *given: Any) -> LabelTable:
    """Let frames of a table be made by the library of the first frame or series among values."""
    library = library_of(*given)
    return table if library == table.frames else table._replace(frames=library)


def array_from_table(table: LabelTable) -> Codes:
    """Lay a table's labels out as an array; see `LabelTable.to_wide`."""
    cell = table.item.astype(np.int64) * table.n_annotators + table.annotator
    distinct, count = np.unique(cell, return_counts=True)
    if np.any(count > 1):
        item, annotator = divmod(int(distinct[count > 1][0]), table.n_annotators)
        raise InputError(
            f"{np.sum(count > 1)} (item, annotator) pairs have several labels, the first "
            f"({str(table.items[item])!r}, {str(table.annotators[annotator])!r}): a wide table "
            "holds one. Make the table with repeats='first' or repeats='last'."
        )
    wide = np.full(table.n_items * table.n_annotators, -1, np.int32)
    wide[cell] = table.label
    return wide.reshape(table.n_items, table.n_annotators)


def frame_from_table(table: LabelTable) -> Any:
    """Give a table's labels by name as a polars frame; see `LabelTable.to_frame`."""
    import polars as pl

    columns = {
        "item": named_series(table.items, table.item),
        "annotator": named_series(table.annotators, table.annotator),
        "label": named_series(table.classes, table.label),
    }
    if table.truth is not None:
        columns["truth"] = named_series(table.classes, table.truth[table.item])
    return pl.DataFrame(columns)


def _long_columns(sheet: Sheet, layout: Layout) -> Columns:
    names = {role: getattr(layout, role) for role in ("item", "annotator", "label", "truth")}
    item = sheet.column(layout.item)
    return Columns(
        item=item,
        annotator=sheet.column(layout.annotator).in_order(),
        label=sheet.column(layout.label),
        where=lambda row, role: sheet.cell(row, names[role]),
        truth=None if layout.truth is None else sheet.column(layout.truth),
        truth_item=item.codes,
    )


def _wide_columns(sheet: Sheet, layout: Layout) -> Columns:
    cells = _side_by_side([sheet.column(name) for name in layout.answers])
    names = {"item": layout.item, "truth": layout.truth}

    def where(row: int, role: str, column: int) -> str:
        return sheet.cell(row, names.get(role, layout.answers[column]))

    return _melt(
        cells,
        sheet.column(layout.item),
        as_names([str(name) for name in layout.answers]),
        where,
        None if layout.truth is None else sheet.column(layout.truth),
    )


def _side_by_side(columns: list[Coded]) -> Coded:
    """Lay columns out row by row, with one vocabulary."""
    codes, names = merge(columns)
    return Coded(np.stack(codes, axis=1).ravel(), names)


def _melt(
    cells: Coded,
    item: Coded,
    annotators: Names,
    where: Callable[[int, str, int], str],
    truth: Coded | None,
) -> Columns:
    """Turn cells, row by row, into labels one a row, without those that are empty."""
    nameless = np.flatnonzero(item.codes < 0)
    if len(nameless):
        raise InputError(f"{where(int(nameless[0]), 'item', 0)} is empty. Every row needs an item.")
    filled = np.flatnonzero(cells.codes >= 0)
    row, annotator = np.divmod(filled, max(len(annotators), 1))
    return Columns(
        item=item.take(row),
        annotator=Coded(annotator.astype(np.int32), annotators),
        label=cells.take(filled),
        where=lambda k, role: (
            where(k, role, 0) if role == "truth" else where(int(row[k]), role, int(annotator[k]))
        ),
        truth=truth,
        truth_item=item.codes,
    )


def _check_lengths(columns: Mapping[Any, Any]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"Expected columns of one length, but got {lengths}.")


def _with_index(frame: Any, named: Named) -> Any:
    """Take the index of a pandas frame for the items where no column names them, as cleanlab's."""
    if named.item is not None or not hasattr(frame, "reset_index"):
        return frame
    if find_column(list(frame.columns), "item", "the frame") is not None:
        return frame
    if frame.index.nlevels > 1:
        raise InputError(
            f"The index of the frame has {frame.index.nlevels} levels, and items have one name. "
            "Keep the level that names them: droplevel() takes the others away."
        )
    return frame.reset_index(names="item")


def _table_from_responses(frame: Any, named: Named, choices: Choices) -> LabelTable:
    """Make a table of the columns that Argilla exports, with lists of answers and of users."""
    import narwhals as nw

    if isinstance(frame, Mapping):
        rows = iter([(1, plain(dict(frame)))])
    elif is_dataset(frame):
        rows = frame_rows(frame_of_dataset(frame))
    else:
        rows = frame_rows(nw.from_native(frame).to_polars())
    document = Document(Path("the frame"), "row", [], lambda: rows)
    columns, _ = import_answers([document], ARGILLA, Request(question=named.label), named.item)
    return build_table(columns, choices, "the frame")


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") or hasattr(value, "column_names")


def named_series(names: Names, codes: NDArray[np.integer[Any]]) -> Any:
    """Give the names of codes as a polars series; -1 is null."""
    import polars as pl

    listed = pl.Series(names.tolist(), dtype=pl.String if names.dtype == TEXT else None)
    return listed.gather(pl.Series(codes).replace(-1, None))
