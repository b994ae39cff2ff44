"""Items of the labels and rows of the features: matched by name, never by luck."""

from __future__ import annotations

import numpy as np

from annotrace.errors import InputError, first_few
from annotrace.labels.vocabulary import TEXT, Codes, Names, as_text, look_up


def match_rows(items: Names, rows: Names) -> Codes:
    """Give the item of each row, where every item has just one row and every row an item.

    Parameters
    ----------
    items : ndarray of shape (n_items,)
        The names in the labels, each once.
    rows : ndarray of shape (n_rows,)
        The name of each row of the features.

    Raises
    ------
    InputError
        With the number of items without a row and of rows without an item, and the first of each.
    """
    codes = look_up(rows, items)
    without_row = items[np.setdiff1d(np.arange(len(items)), codes)]
    without_item = rows[codes < 0]
    if len(without_row) or len(without_item):
        raise InputError(_unmatched(without_row, without_item))
    if len(rows) > len(items):
        twice = np.unique(rows[np.bincount(codes)[codes] > 1])
        raise InputError(
            f"{len(twice)} items have more than one row of features: {first_few(twice)}. "
            "Keep one row for each item."
        )
    return codes


def joined_names(names: Names, more: Names) -> Names:
    """Add to some names those of others that are not among them, each once."""
    new = more[look_up(more, names) < 0]
    _, first = np.unique(new, return_index=True)
    new = new[np.sort(first)]
    if (names.dtype == TEXT) != (new.dtype == TEXT):
        names, new = as_text(names), as_text(new)
    return np.concatenate([names, new])


def _unmatched(without_row: Names, without_item: Names) -> str:
    said = []
    if len(without_row):
        said.append(
            f"{len(without_row)} items of the labels have no features ({first_few(without_row)})"
        )
    if len(without_item):
        said.append(
            f"{len(without_item)} rows of features have no item in the labels "
            f"({first_few(without_item)})"
        )
    return (
        " and ".join(said) + ". Names must match exactly; drop what has no features, and keep "
        "unlabelled rows with `table.with_items(names)` (--keep-unlabelled on the command line)."
    )
