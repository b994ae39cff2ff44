"""How labels that arrive later join those already there."""

from __future__ import annotations

import numpy as np

from annotrace.errors import InputError
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import TEXT, Codes, Names, look_up


def merge_tables(old: LabelTable, new: LabelTable) -> LabelTable:
    """Add the labels of one table to another, matching items, annotators and classes by name.

    Parameters
    ----------
    old, new : LabelTable

    Returns
    -------
    LabelTable
        What was in `old` keeps its codes; names seen for the first time come after.
    """
    items, item = _extend(old.items, new.items, "items")
    annotators, annotator = _extend(old.annotators, new.annotators, "annotators")
    classes, label = _extend(old.classes, new.classes, "classes")
    return LabelTable(
        np.concatenate([old.item, item[new.item]]),
        np.concatenate([old.annotator, annotator[new.annotator]]),
        np.concatenate([old.label, label[new.label]]),
        items=items,
        annotators=annotators,
        classes=classes,
        truth=_merge_truth(old, new, item, label, len(items)),
        positional=old.positional and new.positional,
        frames=old.frames,
    )


def _extend(old: Names, new: Names, what: str) -> tuple[Names, Codes]:
    """Give the longer vocabulary, and the code in it of each new name."""
    codes = look_up(new, old)
    unseen = codes < 0
    if np.any(unseen) and (old.dtype == TEXT) != (new.dtype == TEXT):
        raise InputError(
            f"Expected new {what} of the same kind as before, but got {new.dtype} after "
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
