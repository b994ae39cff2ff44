"""Labels from npy and npz files: three columns by role, or one array of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.codes import Choices
from annotrace.labels.coding import Coded, encode_answers, encode_values
from annotrace.labels.columns import Layout, Named, check_roles, find_column
from annotrace.labels.frames import (
    Sheet,
    table_from_cells,
    table_from_sheet,
)
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Names, as_names, as_text, check_names

ANSWERS = ("labels", "answers", "annotations", "A")

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def table_from_arrays(arrays: Arrays, named: Named, choices: Choices, source: str) -> LabelTable:
    """Make a table of the arrays of a file.

    Parameters
    ----------
    arrays : mapping of name to array
        Of an npz file; the one array of an npy file has the name "".
    named : Named
        Arrays named by the caller.
    choices : Choices
    source : str
        What to call the file in a message.
    """
    for name in filter(None, named):
        if name not in arrays:
            raise InputError(f"{source} has no array {name!r}; {_listed(arrays)}.")
    layout = _find_columns(arrays, named, source)
    if layout is not None:
        return _table_from_columns(arrays, layout, choices, source)
    return _table_from_answers(arrays, named, choices, source)


def _find_columns(arrays: Arrays, named: Named, source: str) -> Layout | None:
    flat = [name for name, array in arrays.items() if array.ndim == 1]
    if any(name is not None and name not in flat for name in named):
        return None
    found: dict[str, Any] = {
        role: find_column(flat, role, source, name) for role, name in named._asdict().items()
    }
    check_roles(found, source)
    if None in (found["item"], found["annotator"], found["label"]):
        return None
    return Layout(**found)


def _table_from_columns(
    arrays: Arrays, layout: Layout, choices: Choices, source: str
) -> LabelTable:
    chosen = [layout.item, layout.annotator, layout.label, layout.truth]
    used = {name: arrays[name] for name in chosen if name is not None}
    if len({len(array) for array in used.values()}) > 1:
        raise InputError(f"{source}: arrays of one length are needed, but {_listed(used)}.")
    sheet = Sheet(source, list(used), lambda name: encode_values(used[name]).as_text())
    return table_from_sheet(sheet, layout, choices)


def _table_from_answers(arrays: Arrays, named: Named, choices: Choices, source: str) -> LabelTable:
    name = named.label if named.label is not None else _find_answers(arrays, source)
    answers = arrays[name]
    cells = encode_answers(answers, f"{source}, array {name!r}" if name else source)
    truth = _find_truth(arrays, named, len(answers), source)
    class_names = arrays.get("classes")
    if class_names is not None:
        given = as_text(as_names(class_names))
        cells = _by_class_name(cells, given, source)
        truth = None if truth is None else _by_class_name(truth, given, source)
        choices = choices if choices.classes is not None else replace(choices, classes=given)
    annotators = arrays.get(named.annotator or "annotators", np.arange(answers.shape[1]))
    items = arrays.get(named.item or "items")
    return table_from_cells(
        cells.as_text(),
        choices,
        items=None
        if items is None
        else as_text(check_names(items, len(answers), f"the items of {source}")),
        annotators=as_text(
            check_names(annotators, answers.shape[1], f"the annotators of {source}")
        ),
        truth=None if truth is None else truth.as_text(),
        source=source,
    )


def _find_answers(arrays: Arrays, source: str) -> str:
    if set(arrays) == {""}:
        return ""
    by_name = [name for name in ANSWERS if name in arrays and arrays[name].ndim == 2]
    if by_name:
        return by_name[0]
    of_integers = [
        name
        for name, array in arrays.items()
        if array.ndim == 2
        and array.dtype.kind in "iu"
        and find_column([name], "truth", source) is None
    ]
    if len(of_integers) == 1:
        return of_integers[0]
    raise InputError(
        f"{source}: cannot tell which array holds the labels; {_listed(arrays)}. Say which array "
        "of a row an item and a column an annotator it is with label=, or name three arrays of "
        "one dimension item, annotator and label."
    )


def _find_truth(arrays: Arrays, named: Named, n_items: int, source: str) -> Coded | None:
    flat = [name for name, array in arrays.items() if array.ndim == 1]
    name = find_column(flat, "truth", source, named.truth)
    if name is None:
        return None
    if len(arrays[name]) != n_items:
        raise InputError(f"{source}: {name!r} has {len(arrays[name])} entries for {n_items} items.")
    return encode_answers(arrays[name][:, None], source)


def _by_class_name(cells: Coded, classes: Names, source: str) -> Coded:
    """Where cells are integers and `classes` lists names, code k means the k-th name."""
    if cells.names.dtype.kind not in "iu":
        return cells
    beyond = cells.names[(cells.names < 0) | (cells.names >= len(classes))]
    if len(beyond):
        raise InputError(
            f"{source}: label {beyond[0]} has no name, for `classes` has {len(classes)} names, "
            f"for labels 0 to {len(classes) - 1}."
        )
    return Coded(cells.codes, classes[cells.names])


def _listed(arrays: Arrays) -> str:
    return "it has " + ", ".join(
        f"{name or 'one array'!r} of shape {array.shape}" for name, array in arrays.items()
    )
