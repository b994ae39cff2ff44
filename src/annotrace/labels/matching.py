"""Matching by name: items to rows of features, and the labels of one table to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from annotrace.errors import InputError, count, first_few
from annotrace.labels.vocabulary import TEXT, Codes, Names, look_up

if TYPE_CHECKING:
    from annotrace.labels.table import LabelTable


def match_rows(items: Names, rows: Names, source: str | None = None) -> Codes:
    """Return the item of each row if items and rows correspond one to one.

    Parameters
    ----------
    items : ndarray of shape (n_items,)
        The distinct item names of the labels.
    rows : ndarray of shape (n_rows,)
        The name of each row of the features.
    source : str, optional
        The file of the labels, for the message.

    Raises
    ------
    InputError
        With the number of items without a row and of rows without an item, and the first of each.
    """
    codes = look_up(rows, items)
    without_row = items[np.setdiff1d(np.arange(len(items)), codes)]
    without_item = rows[codes < 0]
    if len(without_row) or len(without_item):
        raise InputError(_describe_unmatched(without_row, without_item, source or "the labels"))
    if len(rows) > len(items):
        repeated = np.unique(rows[np.bincount(codes)[codes] > 1])
        raise InputError(
            f"{count(len(repeated), 'item has', 'items have')} more than one row of features: "
            f"{first_few(repeated)}. Keep one row per item."
        )
    return codes


def _describe_unmatched(without_row: Names, without_item: Names, labels: str) -> str:
    problems = []
    if len(without_row):
        noun = "item" if len(without_row) == 1 else "items"
        verb = "has" if len(without_row) == 1 else "have"
        problems.append(
            f"{len(without_row):,} {noun} of {labels} {verb} no features ({first_few(without_row)})"
        )
    if len(without_item):
        rows = count(len(without_item), "row of features has", "rows of features have")
        problems.append(f"{rows} no item in {labels} ({first_few(without_item)})")
    return (
        " and ".join(problems) + ". Names must match exactly: remove items without features, and "
        "keep unlabelled rows with `table.with_items(names)` (--keep-unlabelled on the command "
        "line)."
    )


def merge_tables(old: LabelTable, new: LabelTable) -> LabelTable:
    """Add the labels of one table to another, matching items, annotators and classes by name.

    Parameters
    ----------
    old, new : LabelTable

    Returns
    -------
    LabelTable
        The names of `old` keep their codes; new names follow.
    """
    items, item = _extend(old.items, new.items, "items")
    annotators, annotator = _extend(old.annotators, new.annotators, "annotators")
    classes, label = _extend(old.classes, new.classes, "classes")
    return old.replace(
        item=np.concatenate([old.item, item[new.item]]),
        annotator=np.concatenate([old.annotator, annotator[new.annotator]]),
        label=np.concatenate([old.label, label[new.label]]),
        items=items,
        annotators=annotators,
        classes=classes,
        truth=_merge_truth(old, new, item, label, len(items)),
        positional=old.positional and new.positional,
    )


def _extend(old: Names, new: Names, what: str) -> tuple[Names, Codes]:
    """Return the extended vocabulary, and the code in it of each new name."""
    codes = look_up(new, old)
    unseen = codes < 0
    if np.any(unseen) and (old.dtype == TEXT) != (new.dtype == TEXT):
        raise InputError(
            f"Expected new {what} to have the same type as before, but got {new.dtype} after "
            f"{old.dtype}: use numbers in both tables or text in both."
        )
    codes[unseen] = np.arange(len(old), len(old) + np.sum(unseen))
    return np.concatenate([old, new[unseen]]), codes


def _merge_truth(
    old: LabelTable, new: LabelTable, item: Codes, label: Codes, n_items: int
) -> Codes | None:
    if old.truth is None and new.truth is None:
        return None
    truth = np.full(n_items, -1, np.int32)
    if old.truth is not None:
        truth[: old.n_items] = old.truth
    if new.truth is not None:
        given = np.flatnonzero(new.truth >= 0)
        truth[item[given]] = label[new.truth[given]]
    return truth
