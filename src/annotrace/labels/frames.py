"""Tables from frames, dicts of columns and arrays, and frames from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, count
from annotrace.labels.building import TableOptions, build_table
from annotrace.labels.columns import (
    ColumnNames,
    check_distinct,
    column_names,
    find_column,
    find_layout,
)
from annotrace.labels.documents import Document, json_value
from annotrace.labels.formats.argilla import ARGILLA, is_flat
from annotrace.labels.importing import ExportOptions, import_answers
from annotrace.labels.parquet import frame_records, name_classes
from annotrace.labels.sheets import Sheet, table_from_cells, table_from_sheet
from annotrace.labels.table import POLARS, LabelTable
from annotrace.labels.vocabulary import (
    TEXT,
    Codes,
    Names,
    as_answers,
    check_names,
    encode_answers,
    encode_series,
    encode_values,
)


def table_from_long(frame: Any, names: ColumnNames, options: TableOptions) -> LabelTable:
    """Create a table from a frame or dict of columns; see `LabelTable.from_long`."""
    sheet = _sheet_from_frame(frame)
    if is_flat(sheet.columns):
        return with_frame_library(_table_from_argilla(frame, names, options), frame)
    layout = find_layout(sheet.columns, names, sheet.source)
    if layout.wide:
        raise InputError(
            f"{sheet.source} has an item column {layout.item!r} but no columns for the annotator "
            "and the label. Name them with annotator= and label=, or use from_wide if there is one "
            "column per annotator."
        )
    return with_frame_library(table_from_sheet(sheet, layout, options), frame)


def table_from_wide(
    answers: Any,
    names: ColumnNames,
    options: TableOptions,
    *,
    items: Sequence[Any] | None = None,
    annotators: Sequence[Any] | None = None,
) -> LabelTable:
    """Create a table from an array or frame of answers; see `LabelTable.from_wide`."""
    if not isinstance(answers, Mapping) and not is_frame(answers):
        return _table_from_array(_as_array(answers), options, items, annotators)
    if items is not None or annotators is not None:
        raise InputError(
            "`items` and `annotators` name the rows and columns of an array, not of a frame."
        )
    sheet = _sheet_from_frame(_index_to_column(answers, names))
    layout = find_layout(sheet.columns, names, sheet.source)
    if not layout.wide:
        raise InputError(
            f"{sheet.source} has columns {layout.item!r}, {layout.annotator!r} and "
            f"{layout.label!r}: one row per label. Use from_long."
        )
    return with_frame_library(table_from_sheet(sheet, layout, options), answers)


def array_from_table(table: LabelTable) -> Codes:
    """Return the labels in the wide form; see `LabelTable.to_wide`."""
    cell = table.item.astype(np.int64) * table.n_annotators + table.annotator
    distinct, counts = np.unique(cell, return_counts=True)
    if np.any(counts > 1):
        item, annotator = divmod(int(distinct[counts > 1][0]), table.n_annotators)
        raise InputError(
            "Expected at most one label per item and annotator, but "
            f"{count(int(np.sum(counts > 1)), 'pair has', 'pairs have')} several, the first "
            f"({str(table.items[item])!r}, {str(table.annotators[annotator])!r}). Create the table "
            "with repeats='first' or repeats='last'."
        )
    wide = np.full(table.n_items * table.n_annotators, -1, np.int32)
    wide[cell] = table.label
    return wide.reshape(table.n_items, table.n_annotators)


def frame_from_table(table: LabelTable) -> Any:
    """Return the labels by name as a polars frame; see `LabelTable.to_frame`."""
    import polars as pl

    columns = {
        "item": named_series(table.items, table.item),
        "annotator": named_series(table.annotators, table.annotator),
        "label": named_series(table.classes, table.label),
    }
    if table.truth is not None:
        columns["truth"] = named_series(table.classes, table.truth[table.item])
    return pl.DataFrame(columns)


def named_series(names: Names, codes: NDArray[np.integer[Any]]) -> Any:
    """Return the names of codes as a polars series; -1 is null."""
    import polars as pl

    listed = pl.Series(names.tolist(), dtype=pl.String if names.dtype == TEXT else None)
    return listed.gather(pl.Series(codes).replace(-1, None))


def with_frame_library(table: LabelTable, *given: Any) -> LabelTable:
    """Set the library of a table's frames to that of the first frame or series given."""
    library = _library_of(*given)
    return table if library == table.frame_library else table.replace(frame_library=library)


def convert_frame(frame: Any, library: str) -> Any:
    """Convert a polars frame to another library (pandas, pyarrow, ...)."""
    if library == POLARS:
        return frame
    import narwhals as nw

    backend: Any = library
    # The type of a column without values would be guessed.
    schema = None if len(frame) else nw.from_native(frame).schema
    return nw.from_dict(frame.to_dict(as_series=False), schema, backend=backend).to_native()


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of pandas, polars, pyarrow or alike."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def is_series(values: Any) -> bool:
    """Whether values are a pandas series, which has an index."""
    return hasattr(values, "index") and hasattr(values, "items")


def has_default_index(series: Any) -> bool:
    """Whether the index of a pandas series merely numbers its rows."""
    return list(series.index) == list(range(len(series)))


def series_to_dict(series: Any, what: str) -> dict[Any, Any]:
    """Convert a pandas series to a dict by its index, whose repeats must have equal values."""
    values: dict[Any, Any] = {}
    for name, value in series.items():
        if name in values and values[name] != value:
            raise InputError(
                f"The index of `{what}` has {str(name)[:60]!r} more than once, with "
                f"{values[name]!r} and {value!r}: keep one."
            )
        values[name] = value
    return values


def _library_of(*given: Any) -> str:
    for value in given:
        if isinstance(value, np.ndarray | Mapping | Sequence):
            continue
        import narwhals as nw

        known = nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)
        if isinstance(known, nw.DataFrame | nw.Series):
            return str(known.implementation.value)
    return POLARS


def _sheet_from_frame(frame: Any) -> Sheet:
    """Create a sheet from a dict of columns, a dataset, or any frame that narwhals supports."""
    if _is_dataset(frame):
        frame = _frame_from_dataset(frame)
    if isinstance(frame, Mapping):
        lengths = {name: len(values) for name, values in frame.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"Expected columns of equal length, but got {lengths}.")
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


def _is_dataset(value: Any) -> bool:
    """Whether a value is a `datasets.Dataset`; the package need not be installed."""
    return hasattr(value, "with_format") and hasattr(value, "features")


def _frame_from_dataset(dataset: Any) -> Any:
    """Return the selected rows of a Hugging Face dataset as a polars frame."""
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(dataset.with_format("arrow")[:]))
    names = {column: getattr(kind, "names", None) for column, kind in dataset.features.items()}
    return name_classes(frame, {column: {"names": listed} for column, listed in names.items()})


def _as_array(answers: Any) -> NDArray[Any]:
    try:
        return as_answers(answers)
    except ValueError:
        raise InputError(
            "Expected rows of equal length, with one entry per annotator (None if the label is "
            "missing), but their lengths differ."
        ) from None


def _table_from_array(
    array: NDArray[Any],
    options: TableOptions,
    items: Sequence[Any] | None,
    annotators: Sequence[Any] | None,
) -> LabelTable:
    cells = encode_answers(array, "the array")
    n_items, n_annotators = array.shape
    annotators = range(n_annotators) if annotators is None else annotators
    return table_from_cells(
        cells,
        options,
        items=None if items is None else check_names(items, n_items, "`items`"),
        annotators=check_names(annotators, n_annotators, "`annotators`"),
    )


def _index_to_column(frame: Any, names: ColumnNames) -> Any:
    """Use the index of a pandas frame as items if no column names them, as in cleanlab."""
    if names.item is not None or not hasattr(frame, "reset_index"):
        return frame
    if find_column(list(frame.columns), "item", "the frame") is not None:
        return frame
    if frame.index.nlevels > 1:
        raise InputError(
            f"The index of the frame has {frame.index.nlevels} levels, but item names have one. "
            "Keep the level with the item names: droplevel() removes the others."
        )
    return frame.reset_index(names="item")


def _table_from_argilla(frame: Any, names: ColumnNames, options: TableOptions) -> LabelTable:
    """Create a table from the columns that Argilla exports: lists of answers and of users."""
    import narwhals as nw

    if isinstance(frame, Mapping):
        rows = iter([(1, json_value(dict(frame)))])
    elif _is_dataset(frame):
        rows = frame_records(_frame_from_dataset(frame))
    else:
        rows = frame_records(nw.from_native(frame).to_polars())
    document = Document(Path("the frame"), "row", records=lambda: rows)
    export = ExportOptions(question=names.label)
    columns, _ = import_answers([document], ARGILLA, export, names.item)
    return build_table(columns, options, "the frame")
