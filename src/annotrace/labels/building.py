"""From columns of names to the parts of a table: checks, classes and truth."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from annotrace.errors import InputError, first_few
from annotrace.labels.codes import Repeats, drop_repeats
from annotrace.labels.mapped_codes import map_large
from annotrace.labels.vocabulary import (
    Coded,
    Codes,
    Names,
    as_names,
    as_numbers,
    as_text,
    look_up,
    sort_names,
)

TableParts: TypeAlias = dict[str, Any]
"""The arguments of `LabelTable`, by name."""


@dataclass(frozen=True)
class TableOptions:
    """Options of all readers; see `LabelTable.from_long`."""

    classes: Sequence[Any] | Names | None = None
    skip: Collection[Any] = ()
    repeats: Repeats = "keep"

    def __post_init__(self) -> None:
        for name in ("classes", "skip"):
            if isinstance(value := getattr(self, name), str):
                raise InputError(
                    f"Expected `{name}` to be a list, but got {value!r}. Use {name}=[{value!r}]."
                )


@dataclass(frozen=True)
class Columns:
    """Labels in the long form, one per row, with the place of each for messages.

    Attributes
    ----------
    source : str
        The file, frame or array, for messages.
    item, annotator, label : Coded of n labels
    where : callable
        Names the cell of a row and a role ("item", "label", ...) for messages.
    truth : Coded of m rows, or None
    truth_item : ndarray of shape (m,), int32
        The item of each row of `truth`.
    classes : ndarray of shape (n_classes,), or None
        All classes, if the source lists them.
    positional : bool
        Whether items are positions.
    """

    source: str
    item: Coded
    annotator: Coded
    label: Coded
    where: Callable[[int, str], str]
    truth: Coded | None = None
    truth_item: Codes = field(default_factory=lambda: np.empty(0, np.int32))
    classes: Names | None = None
    positional: bool = False


def build_parts(columns: Columns, options: TableOptions) -> TableParts:
    """Check the labels, encode the classes and return the parts of the table."""
    for role in ("item", "annotator", "label"):
        if role != "label" or "" not in options.skip:
            _check_filled(columns, role)
    all_columns, columns = columns, _skip(columns, options.skip) if options.skip else columns
    if len(columns.label.codes) == 0:
        skipped = " except those to skip" * bool(options.skip)
        raise InputError(f"{columns.source} has no labels{skipped}.")
    _warn_unused_skip(all_columns, options.skip)
    classes = _choose_classes(columns, options)
    label = _encode_labels(columns, classes)
    item, annotator = columns.item, columns.annotator
    kept = drop_repeats(
        item.codes,
        annotator.codes,
        options.repeats,
        len(annotator.names),
        lambda row: columns.where(row, "item"),
    )
    return {
        "item": map_large(item.codes[kept]),
        "annotator": map_large(annotator.codes[kept]),
        "label": map_large(label[kept]),
        "items": item.names,
        "annotators": annotator.names,
        "classes": classes,
        "truth": None if columns.truth is None else _encode_truth(columns, columns.truth, classes),
        "positional": columns.positional,
    }


def _check_filled(columns: Columns, role: str) -> None:
    codes = getattr(columns, role).codes
    if len(codes) and codes.min() < 0:
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(
            f"{columns.where(row, role)} is empty. Every row needs an item, an annotator and a "
            "label: fill it in or delete the row (skip=[''], or --skip '', leaves out rows without "
            "a label)."
        )


def _skip(columns: Columns, skip: Iterable[Any]) -> Columns:
    label = columns.label.without(skip)
    rows = np.flatnonzero(label.codes >= 0)
    return replace(
        columns,
        item=columns.item.take(rows),
        annotator=columns.annotator.take(rows),
        label=label.take(rows),
        where=lambda row, role: columns.where(row if role == "truth" else int(rows[row]), role),
        truth=None if columns.truth is None else columns.truth.without(skip),
    )


def _warn_unused_skip(columns: Columns, skip: Iterable[Any]) -> None:
    """Warn if an answer to skip does not occur, since it may be misspelt."""
    labels = as_text(columns.label.names).tolist()
    true = [] if columns.truth is None else as_text(columns.truth.names).tolist()
    folded = {name.casefold(): name for name in labels}
    for name in sorted(set(as_text(as_names(skip)).tolist()).difference(labels, true, [""])):
        similar = get_close_matches(name.casefold(), folded, 1)
        nearest = f"; the most similar label is {folded[similar[0]]!r}" if similar else ""
        warnings.warn(
            f"No label is {name!r}, so `skip` has no effect for it{nearest}.", stacklevel=2
        )


def _choose_classes(columns: Columns, options: TableOptions) -> Names:
    given = columns.classes if options.classes is None else options.classes
    if given is not None:
        return _check_classes(given)
    _check_single_labels(columns)
    _check_no_scores(columns)
    classes = _find_classes(columns.label, columns.source)
    if classes.dtype.kind in "if" and -1 in classes:
        warnings.warn(
            "-1 is read as a class. If it means that the label is missing, pass `skip=[-1]`.",
            stacklevel=2,
        )
    return classes


def _find_classes(label: Coded, source: str) -> Names:
    classes, n_labels = sort_names(label.names), len(label.codes)
    if len(classes) < 2:
        raise InputError(
            f"{source}: all labels are {str(classes[0])!r}, but at least two classes are needed. "
            "If there are classes that nobody reported, list all with classes= (--class)."
        )
    if len(classes) > max(100, n_labels // 2):
        raise InputError(
            f"{source}: {len(classes)} distinct labels among {n_labels} ({first_few(classes, 2)}) "
            "look like text or numbers rather than classes. Name the columns (item=, annotator=, "
            "label=), or list all classes with classes= (--class)."
        )
    return classes


def _check_classes(given: Sequence[Any] | Names) -> Names:
    classes = as_names(given)
    if len(np.unique(classes)) < max(2, len(classes)):
        raise InputError(
            f"Expected `classes` to be at least two distinct names, but got {first_few(classes)}."
        )
    return classes


def _check_single_labels(columns: Columns) -> None:
    """Raise an error for labels that are lists, or other labels joined by a separator."""
    names = as_text(columns.label.names).tolist()
    known = set(names)
    for code, name in enumerate(names):
        if _is_json_list(name) or any(_is_joined(name, sign, known) for sign in "|;,"):
            row = int(np.argmax(columns.label.codes == code))
            raise InputError(
                f"{columns.where(row, 'label')}: {name!r} contains several labels, but a row has "
                "one label. Keep one of them, or list all with classes= (--class) to treat each "
                "combination as a class."
            )


def _is_json_list(name: str) -> bool:
    try:
        return name.startswith("[") and isinstance(json.loads(name), list)
    except (ValueError, RecursionError):
        return False


def _is_joined(name: str, separator: str, known: set[str]) -> bool:
    return separator in name and all(part.strip() in known for part in name.split(separator))


def _check_no_scores(columns: Columns) -> None:
    """Raise an error for labels or truth with fractions: they are scores, not classes."""
    if as_numbers(columns.label.names) is None:
        return
    for role, column in (("label", columns.label), ("truth", columns.truth)):
        values = None if column is None else as_numbers(column.names)
        if column is None or values is None:
            continue
        rows = np.flatnonzero(np.append(values % 1 != 0, False)[column.codes])
        if len(rows):
            row = int(rows[0])
            raise InputError(
                f"{columns.where(row, role)}: {_name(column, row)!r} is a score, but labels must "
                "be classes, not ordinal or continuous scores. Round or group them into classes, "
                "or list all with classes= (--class) to treat each number as a class."
            )


def _encode_labels(columns: Columns, classes: Names) -> Codes:
    codes = look_up(columns.label.names, classes)[columns.label.codes]
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        row = int(unknown[0])
        raise InputError(
            f"{columns.where(row, 'label')}: {_name(columns.label, row)!r} is not among the given "
            f"classes ({first_few(classes, 10)}); {len(unknown)} such labels in total. Add it to "
            "classes=, or leave out such rows with skip=."
        )
    return codes


def _encode_truth(columns: Columns, truth: Coded, classes: Names) -> Codes | None:
    known = truth.codes >= 0
    if not known.any():
        return None
    codes = np.append(look_up(truth.names, classes), np.int32(-1))[truth.codes]
    unknown = np.flatnonzero(known & (codes < 0))
    if len(unknown):
        row = int(unknown[0])
        raise InputError(
            f"{columns.where(row, 'truth')}: the truth {_name(truth, row)!r} is not a class; the "
            f"classes are {first_few(classes, 10)}. List all classes with classes= (--class) if "
            "nobody reported this one."
        )
    of_item = np.full(len(columns.item.names), -1, np.int32)
    of_item[columns.truth_item[known]] = codes[known]
    conflict = np.flatnonzero(known & (of_item[columns.truth_item] != codes))
    if len(conflict):
        row = int(conflict[0])
        item = columns.truth_item[row]
        raise InputError(
            f"{columns.where(row, 'truth')}: item {str(columns.item.names[item])!r} is "
            f"{_name(truth, row)!r} here and {str(classes[of_item[item]])!r} in another row. "
            "An item has one true class."
        )
    return of_item


def _name(column: Coded, row: int) -> str:
    return str(column.names[column.codes[row]])
