"""From columns of names to a table: the classes, the truth, and what is refused."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, first_few
from annotrace.labels.codes import Choices, drop_repeats
from annotrace.labels.coding import Coded
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes, Names, as_names, as_text, in_order, look_up


@dataclass(frozen=True)
class Columns:
    """Labels one a row, with what is needed to say where each of them came from.

    Attributes
    ----------
    item, annotator, label : Coded of n labels
    where : callable
        Given a row and a role ("item", "label", ...), names the cell for a message.
    truth : Coded of m rows, or None
    truth_item : ndarray of shape (m,), int32
        The item of each row of `truth`.
    """

    item: Coded
    annotator: Coded
    label: Coded
    where: Callable[[int, str], str]
    truth: Coded | None = None
    truth_item: Codes = field(default_factory=lambda: np.empty(0, np.int32))


def build_table(
    columns: Columns, choices: Choices, source: str, positional: bool = False
) -> LabelTable:
    """Check the labels and number the classes, and make the table."""
    for role in ("item", "annotator", "label"):
        if role != "label" or "" not in choices.skip:
            _check_filled(columns, role)
    given = columns
    if choices.skip:
        columns = _leave_out(given, choices.skip)
    if len(columns.label.codes) == 0:
        raise InputError(f"{source} has no labels{' but those to skip' if choices.skip else ''}.")
    _warn_of_absent(given, choices.skip)
    if choices.classes is None:
        _check_single(columns)
        _check_scores(columns)
        classes = _find_classes(columns.label, source)
        _warn_of_minus_one(classes)
    else:
        classes = _given_classes(choices.classes)
    label = _encode_labels(columns, classes)
    item, annotator = columns.item, columns.annotator
    kept = drop_repeats(
        item.codes,
        annotator.codes,
        choices.repeats,
        len(annotator.names),
        lambda row: columns.where(row, "item"),
    )
    return LabelTable(
        item.codes[kept],
        annotator.codes[kept],
        label[kept],
        items=item.names,
        annotators=annotator.names,
        classes=classes,
        truth=None if columns.truth is None else _true_classes(columns, columns.truth, classes),
        positional=positional,
    )


def _check_filled(columns: Columns, role: str) -> None:
    codes = getattr(columns, role).codes
    if len(codes) and codes.min() < 0:
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(
            f"{columns.where(row, role)} is empty. Every row needs an item, an annotator and a "
            "label: fill it in or delete the row (skip=[''], or --skip '', leaves out rows without "
            "a label)."
        )


def _warn_of_absent(columns: Columns, skip: Iterable[Any]) -> None:
    """Warn of answers to skip that nobody gave, which may be misspelt."""
    given = as_text(columns.label.names).tolist()
    true = [] if columns.truth is None else as_text(columns.truth.names).tolist()
    folded = {name.casefold(): name for name in given}
    for name in sorted(set(as_text(as_names(skip)).tolist()).difference(given, true, [""])):
        alike = get_close_matches(name.casefold(), folded, 1)
        nearest = f"; the nearest is {folded[alike[0]]!r}" if alike else ""
        warnings.warn(
            f"No label is {name!r}, and `skip` left out nothing for it{nearest}.", stacklevel=2
        )


def _warn_of_minus_one(classes: Names) -> None:
    """Warn where the number -1 is a class: in arrays it means that there is no label."""
    if classes.dtype.kind in "if" and -1 in classes:
        warnings.warn(
            "-1 is taken for a class; where it means that there is no label, pass `skip=[-1]`.",
            stacklevel=2,
        )


def _leave_out(columns: Columns, skip: Iterable[Any]) -> Columns:
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


def _find_classes(label: Coded, source: str) -> Names:
    classes, n_labels = in_order(label.names), len(label.codes)
    if len(classes) < 2:
        raise InputError(
            f"{source}: all labels are {str(classes[0])!r}, and with one class there is nothing to "
            "learn. If there are others that nobody reported, name all with classes= (--class)."
        )
    if len(classes) > max(100, n_labels // 2):
        raise InputError(
            f"{source}: {len(classes)} different labels among {n_labels} ({first_few(classes, 2)}) "
            "look like text or numbers rather than classes. Name the columns (item=, annotator=, "
            "label=), or all classes with classes= (--class)."
        )
    return classes


def _given_classes(given: Sequence[Any] | Names) -> Names:
    classes = as_names(given)
    distinct, count = np.unique(classes, return_counts=True)
    if len(distinct) < 2 or np.any(count > 1):
        raise InputError(
            f"Expected `classes` to be at least two different names, but got {first_few(classes)}."
        )
    return classes


def _check_single(columns: Columns) -> None:
    """Refuse labels that are lists, or are other labels joined by a sign."""
    names = as_text(columns.label.names).tolist()
    known = set(names)
    for code, name in enumerate(names):
        if _is_list(name) or any(_joins(name, sign, known) for sign in "|;,"):
            row = int(np.argmax(columns.label.codes == code))
            raise InputError(
                f"{columns.where(row, 'label')}: {name!r} holds several labels, and this library "
                "learns from one label a row. Keep one of them, or name all with classes= "
                "(--class) to take each combination as a class of its own."
            )


def _is_list(name: str) -> bool:
    try:
        return name.startswith("[") and isinstance(json.loads(name), list)
    except ValueError:
        return False


def _joins(name: str, sign: str, known: set[str]) -> bool:
    return sign in name and all(part.strip() in known for part in name.split(sign))


def _check_scores(columns: Columns) -> None:
    """Refuse numbers with a fraction, in the labels or the truth: they are scores, not classes."""
    if not _are_numbers(columns.label.names):
        return
    for role, column in (("label", columns.label), ("truth", columns.truth)):
        if column is None or not _are_numbers(column.names):
            continue
        fraction = [float(name) % 1 != 0 for name in as_text(column.names).tolist()]
        hits = np.flatnonzero(np.array([*fraction, False])[column.codes])
        if len(hits):
            row = int(hits[0])
            raise InputError(
                f"{columns.where(row, role)}: {_name(column, row)!r} is a score, and this library "
                "learns classes, not ordinal or continuous scores. Round or group them into "
                "classes, or name all with classes= (--class) to take each number as a class."
            )


def _are_numbers(names: Names) -> bool:
    try:
        return all(np.isfinite(float(name)) for name in as_text(names).tolist())
    except ValueError:
        return False


def _encode_labels(columns: Columns, classes: Names) -> Codes:
    codes = look_up(columns.label.names, classes)[columns.label.codes]
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        row = int(unknown[0])
        raise InputError(
            f"{columns.where(row, 'label')}: {_name(columns.label, row)!r} is not among the "
            f"classes given ({first_few(classes, 10)}); {len(unknown)} such in all. "
            "Add it to classes=, or leave such rows out with skip=."
        )
    return codes


def _true_classes(columns: Columns, truth: Coded, classes: Names) -> Codes | None:
    known = truth.codes >= 0
    if not known.any():
        return None
    codes = np.append(look_up(truth.names, classes), np.int32(-1))[truth.codes]
    _check_truth_known(columns, truth, np.flatnonzero(known & (codes < 0)), classes)
    of_item = np.full(len(columns.item.names), -1, np.int32)
    of_item[columns.truth_item[known]] = codes[known]
    conflict = np.flatnonzero(known & (of_item[columns.truth_item] != codes))
    if len(conflict):
        row = int(conflict[0])
        item = columns.truth_item[row]
        raise InputError(
            f"{columns.where(row, 'truth')}: item {str(columns.item.names[item])!r} is "
            f"{_name(truth, row)!r} here and {str(classes[of_item[item]])!r} in another row. "
            "An item has one truth."
        )
    return of_item


def _check_truth_known(
    columns: Columns, truth: Coded, unknown: NDArray[np.int64], classes: Names
) -> None:
    if len(unknown):
        row = int(unknown[0])
        raise InputError(
            f"{columns.where(row, 'truth')}: the truth {_name(truth, row)!r} is not a class; "
            f"classes are {first_few(classes, 10)}. Name all classes with classes= (--class) "
            "if nobody reported this one."
        )


def _name(column: Coded, row: int) -> str:
    return str(column.names[column.codes[row]])
