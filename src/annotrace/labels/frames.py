"""Frames of any library from tables and codes, and what a value in memory is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, count
from annotrace.labels.vocabulary import TEXT, Codes, Names

if TYPE_CHECKING:
    from annotrace.labels.table import LabelTable

POLARS = "polars"


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


def as_one_object(value: object) -> NDArray[np.object_]:
    """Return an array of shape () whose only element is the value itself."""
    array = np.empty(1, dtype=object)
    array[0] = value
    return array.reshape(())


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


def convert_frame(frame: Any, library: str) -> Any:
    """Convert a polars frame to another library (pandas, pyarrow, ...)."""
    if library == POLARS:
        return frame
    import narwhals as nw

    backend: Any = library
    # The type of a column without values would be guessed.
    schema = None if len(frame) else nw.from_native(frame).schema
    return nw.from_dict(frame.to_dict(as_series=False), schema, backend=backend).to_native()


def with_frame_library(table: LabelTable, *given: Any) -> LabelTable:
    """Set the library of a table's frames to that of the first frame or series given."""
    library = _library_of(*given)
    return table if library == table.frame_library else table.replace(frame_library=library)


def _library_of(*given: Any) -> str:
    for value in given:
        if isinstance(value, np.ndarray | Mapping | Sequence):
            continue
        import narwhals as nw

        known = nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)
        if isinstance(known, nw.DataFrame | nw.Series):
            return str(known.implementation.value)
    return POLARS


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
