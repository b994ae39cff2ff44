"""Items by name or by row: matched to features, selected from a table, merged with another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from annotrace.errors import InputError, count, first_few
from annotrace.labels.codes import check_positions, labels_of
from annotrace.labels.vocabulary import TEXT, Codes, Names, look_up, union_names

if TYPE_CHECKING:
    from annotrace.labels.table import LabelTable


def match_rows(items: Names, rows: Names, source: str | None = None) -> Codes:
    """Return the item of each row of the features if items and rows correspond one to one.

    Otherwise raise an error that counts items without a row and rows without an item. `source` is
    the file of the labels.
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
        items = count(len(without_row), f"item of {labels} has", f"items of {labels} have")
        problems.append(f"{items} no features ({first_few(without_row)})")
    if len(without_item):
        rows = count(len(without_item), "row of features has", "rows of features have")
        problems.append(f"{rows} no item in {labels} ({first_few(without_item)})")
    split = (
        " Scikit-learn's tools split X and the table by position: pass them "
        "`table.match_items(names)`."
    )
    return (
        " and ".join(problems) + ". Names must match exactly: remove items without features, and "
        "keep unlabelled rows with `table.with_items(names)` (--keep-unlabelled on the command "
        "line)." + split * (len(problems) == 2)
    )


def items_at(table: LabelTable, rows: Any) -> LabelTable:
    """Return the items at some rows; see `LabelTable.__getitem__`."""
    # Positions are indexed as NumPy does: negative ones, slices, masks, and `table[rows, ...]`.
    return take_items(table, np.atleast_1d(np.arange(table.n_items)[rows]))


def take_items(table: LabelTable, selection: ArrayLike) -> LabelTable:
    """Return some items; see `LabelTable.select_items`."""
    chosen = check_positions(selection, table.n_items)
    row, labels = labels_of(table.offsets, chosen)
    names = np.arange(len(chosen), dtype=np.int32) if table.positional else table.items[chosen]
    return table.replace(
        item=row,
        annotator=table.annotator[labels],
        label=table.label[labels],
        items=names,
        truth=None if table.truth is None else table.truth[chosen],
    )


def take_annotators(table: LabelTable, selection: ArrayLike) -> LabelTable:
    """Return the labels of some annotators; see `LabelTable.select_annotators`."""
    chosen = check_positions(selection, table.n_annotators)
    recoded = np.full(table.n_annotators, -1, np.int32)
    recoded[chosen] = np.arange(len(chosen), dtype=np.int32)
    kept = recoded[table.annotator] >= 0
    return table.replace(
        item=table.item[kept],
        annotator=recoded[table.annotator[kept]],
        label=table.label[kept],
        annotators=table.annotators[chosen],
    )


def merge_tables(old: LabelTable, new: LabelTable) -> LabelTable:
    """Add the labels of one table to another, matching items, annotators and classes by name.

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
    names = union_names(old, new)
    if len(names) > len(old) and (old.dtype == TEXT) != (new.dtype == TEXT):
        raise InputError(
            f"Expected new {what} to have the same type as before, but got {new.dtype} after "
            f"{old.dtype}: use numbers in both tables or text in both."
        )
    return names, look_up(new, names)


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
