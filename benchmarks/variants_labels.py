"""Variants of a crowd: which of its labels each item keeps.

full      all labels
rand-1    one label of each item, at random
rand-2    two labels of each item, at random; one where there is only one
rand-var  a random number of labels, uniform from 1 to all labels of the item
worst-1, worst-2, worst-var
          as many, but wrong labels are kept before correct ones

One seed draws one order of the labels and one number of labels for each item, so that the variants
of a seed are comparable: the label of rand-1 is among those of rand-2, and rand-var keeps as many
labels of each item as worst-var.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels import LabelTable

VARIANTS = ("full", "rand-1", "rand-2", "rand-var", "worst-1", "worst-2", "worst-var")


def keep_labels(
    table: LabelTable, truth: NDArray[np.integer], variant: str, seed: int | np.random.Generator
) -> LabelTable:
    """Return a table with the labels of a variant; items and annotators stay.

    Parameters
    ----------
    table : LabelTable
    truth : ndarray of int, shape (n_items,)
        Says which labels are wrong. The table that is returned does not have it.
    variant : str
        One of `VARIANTS`.
    seed : int or Generator
    """
    if variant not in VARIANTS:
        raise InputError(f"Expected a variant of {', '.join(VARIANTS)}, but got {variant!r}.")
    rng = np.random.default_rng(seed)
    order, shares = rng.random(table.n_labels), rng.random(table.n_items)
    kind, _, number = variant.partition("-")
    if kind == "full":
        kept = np.arange(table.n_labels)
    else:
        right = (table.label == truth[table.item]) & (kind == "worst")
        kept = _first(
            table, np.lexsort([order, right, table.item]), _numbers(table, number, shares)
        )
    return LabelTable.from_codes(
        table.item[kept],
        table.annotator[kept],
        table.label[kept],
        n_items=table.n_items,
        n_annotators=table.n_annotators,
        n_classes=table.n_classes,
    )


def _numbers(table: LabelTable, number: str, shares: NDArray[np.float64]) -> NDArray[np.integer]:
    """Return how many labels each item keeps, shape (n_items,)."""
    available = table.labels_per_item()
    if number == "var":
        return np.ceil((1 - shares) * available).astype(np.int64)
    return np.minimum(int(number), available)


def _first(
    table: LabelTable, ordered: NDArray[np.intp], numbers: NDArray[np.integer]
) -> NDArray[np.intp]:
    """Return the first labels of each item, sorted; `ordered` goes item by item."""
    place = np.arange(table.n_labels) - table.offsets[table.item]
    return np.sort(ordered[place < numbers[table.item]])
