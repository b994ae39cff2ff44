"""Labels in memory: frames, dicts of columns, Hugging Face datasets and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.arrays import labels_in_array
from annotrace.labels.building import Columns, TableOptions, TableParts, build_parts
from annotrace.labels.columns import (
    ColumnNames,
    as_columns,
    check_distinct,
    column_names,
    find_column,
)
from annotrace.labels.documents import Document, json_value
from annotrace.labels.formats.argilla import ARGILLA, is_flat
from annotrace.labels.frames import is_frame
from annotrace.labels.layouts import long_layout, wide_layout
from annotrace.labels.parquet import frame_records, name_classes
from annotrace.labels.reading import ExportOptions, import_answers
from annotrace.labels.sheets import Sheet, frame_sheet, labels_in_sheet, with_cache
from annotrace.labels.vocabulary import as_answers, encode_values


def long_parts(frame: Any, names: ColumnNames, options: TableOptions) -> TableParts:
    """Return the parts of a table from one row per label; see `LabelTable.from_long`."""
    sheet = _sheet_from_frame(frame)
    if is_flat(sheet.columns):
        return build_parts(_labels_in_argilla(frame, names), options)
    return build_parts(labels_in_sheet(sheet, long_layout(sheet, names)), options)


def wide_parts(
    answers: Any,
    names: ColumnNames,
    options: TableOptions,
    items: Sequence[Any] | None = None,
    annotators: Sequence[Any] | None = None,
) -> TableParts:
    """Return the parts of a table from one row per item; see `LabelTable.from_wide`."""
    if isinstance(answers, Mapping) or is_frame(answers):
        if items is not None:
            raise InputError("`items` name the rows of an array; name a column with `item`.")
        names = names._replace(annotators=as_columns(annotators))
        return build_parts(_wide_labels(answers, names), options)
    return build_parts(labels_in_array(_as_array(answers), items, annotators), options)


def _wide_labels(answers: Any, names: ColumnNames) -> Columns:
    sheet = _sheet_from_frame(_index_to_column(answers, names))
    layout = wide_layout(sheet, names)
    if not layout.wide:
        raise InputError(
            f"{sheet.source} has columns {layout.item!r}, {layout.annotator!r} and "
            f"{layout.label!r}: one row per label. Use from_long."
        )
    return labels_in_sheet(sheet, layout)


def _sheet_from_frame(frame: Any) -> Sheet:
    """Create a sheet from a dict of columns, a dataset, or any frame that narwhals supports."""
    if _is_dataset(frame):
        frame = _frame_from_dataset(frame)
    if isinstance(frame, Mapping):
        lengths = {name: len(values) for name, values in frame.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"Expected columns of equal length, but got {lengths}.")
        return with_cache(Sheet("the dict", list(frame), lambda name: encode_values(frame[name])))
    check_distinct(column_names(frame), "the frame")
    return with_cache(frame_sheet(frame, "the frame"))


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


def _labels_in_argilla(frame: Any, names: ColumnNames) -> Columns:
    """Return the labels in the columns that Argilla exports: lists of answers and of users."""
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
    return columns
