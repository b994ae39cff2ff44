"""Arrays of answers, in memory or in npy and npz files; an npz file may have three columns too."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, count
from annotrace.labels.building import Columns
from annotrace.labels.columns import ColumnNames, Layout, find_column, find_roles
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import NPY, ZIP, read_bytes
from annotrace.labels.npy import load_arrays
from annotrace.labels.sheets import Sheet, labels_in_sheet, melt
from annotrace.labels.vocabulary import (
    Coded,
    Names,
    as_names,
    as_text,
    check_names,
    encode_answers,
    encode_values,
)
from annotrace.limits import Limits

ANSWERS = ("labels", "answers", "annotations", "A")

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def _open(path: Path, start: bytes, limits: Limits) -> Document | None:
    if not start.startswith((NPY, ZIP)):
        return None

    def arrays() -> Arrays:
        return load_arrays(io.BytesIO(read_bytes(path, limits)), str(path), limits)

    return Document(path, "array", arrays=arrays)


NPY_OR_NPZ = FileType((), _open)


def labels_in_array(
    array: NDArray[Any], items: Sequence[Any] | None, annotators: Sequence[Any] | None
) -> Columns:
    """Return the labels in an array in memory; see `LabelTable.from_wide`."""
    cells = encode_answers(array, "the array")
    n_items, n_annotators = array.shape
    annotators = range(n_annotators) if annotators is None else annotators
    return _labels_in_cells(
        cells,
        items=None if items is None else check_names(items, n_items, "`items`"),
        annotators=check_names(annotators, n_annotators, "`annotators`"),
    )


def labels_in_arrays(arrays: Arrays, names: ColumnNames, source: str) -> Columns:
    """Return the labels in the arrays of a file: three columns by role, or one array of answers.

    The array of an npy file has the name "".
    """
    if names.annotators:
        raise InputError(f"{source} contains arrays: annotators= names columns of a table.")
    for name in filter(None, names.by_role.values()):
        if name not in arrays:
            raise InputError(f"{source} has no array {name!r}; {_describe(arrays)}.")
    layout = _find_columns(arrays, names, source)
    if layout is None:
        return _labels_in_answers(arrays, names, source)
    chosen = (layout.item, layout.annotator, layout.label, layout.truth)
    used = {name: arrays[name] for name in chosen if name is not None}
    if len({len(array) for array in used.values()}) > 1:
        raise InputError(f"{source}: expected arrays of equal length, but {_describe(used)}.")
    sheet = Sheet(source, list(used), lambda name: encode_values(used[name]).as_text())
    return labels_in_sheet(sheet, layout)


def _find_columns(arrays: Arrays, names: ColumnNames, source: str) -> Layout | None:
    columns = [name for name, array in arrays.items() if array.ndim == 1]
    if any(name is not None and name not in columns for name in names.by_role.values()):
        return None
    found = find_roles(columns, names, source)
    if None in (found["item"], found["annotator"], found["label"]):
        return None
    return Layout(**found)


def _labels_in_answers(arrays: Arrays, names: ColumnNames, source: str) -> Columns:
    name = names.label if names.label is not None else _find_answers(arrays, source)
    answers = arrays[name]
    cells = encode_answers(answers, f"{source}, array {name!r}" if name else source)
    n_items, n_annotators = answers.shape
    truth = _find_truth(arrays, names, n_items, source)
    classes = None
    if "classes" in arrays:
        classes = as_text(as_names(arrays["classes"]))
        cells = _name_classes(cells, classes, source)
        truth = None if truth is None else _name_classes(truth, classes, source)
    annotators = arrays.get(names.annotator or "annotators", np.arange(n_annotators))
    items = arrays.get(names.item or "items")
    if items is not None:
        items = as_text(check_names(items, n_items, f"the items of {source}"))
    columns = _labels_in_cells(
        cells.as_text(),
        items=items,
        annotators=as_text(check_names(annotators, n_annotators, f"the annotators of {source}")),
        truth=None if truth is None else truth.as_text(),
        source=source,
    )
    return replace(columns, classes=classes)


def _labels_in_cells(
    cells: Coded,
    *,
    items: Names | None,
    annotators: Names,
    truth: Coded | None = None,
    source: str = "the array",
) -> Columns:
    def where(row: int, role: str, column: int) -> str:
        if role == "truth":
            return f"{source}, truth index {row}"
        return f"{source}, row index {row}, column index {column}"

    rows = np.arange(len(cells.codes) // max(len(annotators), 1), dtype=np.int32)
    item = Coded(rows, rows if items is None else items)
    columns = melt(cells, item, annotators, truth, where, source)
    return replace(columns, positional=items is None)


def _find_answers(arrays: Arrays, source: str) -> str:
    if set(arrays) == {""}:
        return ""
    two_dimensional = {name: array for name, array in arrays.items() if array.ndim == 2}
    for name in ANSWERS:
        if name in two_dimensional:
            return name
    candidates = [
        name
        for name, array in two_dimensional.items()
        if array.dtype.kind in "iu" and find_column([name], "truth", source) is None
    ]
    if len(candidates) == 1:
        return candidates[0]
    raise InputError(
        f"{source}: cannot detect which array contains the labels; {_describe(arrays)}. Name the "
        "array with one row per item and one column per annotator with label=, or name three "
        "arrays of one dimension item, annotator and label."
    )


def _find_truth(arrays: Arrays, names: ColumnNames, n_items: int, source: str) -> Coded | None:
    columns = [name for name, array in arrays.items() if array.ndim == 1]
    name = find_column(columns, "truth", source, names.truth)
    if name is None:
        return None
    if len(arrays[name]) != n_items:
        raise InputError(
            f"{source}: {name!r} has {count(len(arrays[name]), 'entry', 'entries')} for "
            f"{count(n_items, 'item')}."
        )
    return encode_answers(arrays[name][:, None], source)


def _name_classes(cells: Coded, classes: Names, source: str) -> Coded:
    """Replace integers by class names: code k is the k-th name."""
    if cells.names.dtype.kind not in "iu":
        return cells
    unnamed = cells.names[(cells.names < 0) | (cells.names >= len(classes))]
    if len(unnamed):
        raise InputError(
            f"{source}: label {unnamed[0]} has no name, because `classes` has {len(classes)} "
            f"names, for labels 0 to {len(classes) - 1}."
        )
    return Coded(cells.codes, classes[cells.names])


def _describe(arrays: Arrays) -> str:
    return "it has " + ", ".join(
        f"{name or 'one array'!r} of shape {array.shape}" for name, array in arrays.items()
    )
