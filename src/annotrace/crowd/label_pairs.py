"""Pairs of labels that different annotators gave to one item."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.labels.table import LabelTable

Index = NDArray[np.int64]

# 2**18 pairs give a correlation to within .004, and cost less than reading 5 million labels.
MAX_PAIRS = 2**18


class LabelPairs(NamedTuple):
    """Rows of a label table, two by two.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_pairs,)
    """

    first: Index
    second: Index

    def take(self, start: int, stop: int) -> LabelPairs:
        """Return some consecutive pairs."""
        return LabelPairs(self.first[start:stop], self.second[start:stop])


def pair_labels(table: LabelTable, max_pairs: int = MAX_PAIRS) -> LabelPairs:
    """Return all pairs of labels of one item by two annotators, or a random sample of them.

    Parameters
    ----------
    table : LabelTable
    max_pairs : int
        If there are more, as many are drawn, always the same.

    Examples
    --------
    >>> pair_labels(LabelTable.from_codes([0, 0, 0, 1], annotator=[0, 1, 2, 0], label=[1, 1, 0, 1]))
    LabelPairs(first=array([1, 2, 2]), second=array([0, 0, 1]))
    """
    n_labels = table.labels_per_item()
    ends = np.cumsum(n_labels * (n_labels - 1) // 2)
    n_pairs = int(ends[-1]) if len(ends) else 0
    if n_pairs <= max_pairs:
        chosen = np.arange(n_pairs)
    else:
        chosen = np.sort(np.random.default_rng(0).integers(n_pairs, size=max_pairs))
    item = np.searchsorted(ends, chosen, side="right")
    before = np.concatenate([[0], ends])[item]
    second, first = _triangle(chosen - before)
    first, second = first + table.offsets[item], second + table.offsets[item]
    differ = table.annotator[first] != table.annotator[second]
    return LabelPairs(first[differ], second[differ])


def labels_of(table: LabelTable, annotators: NDArray[np.bool_]) -> LabelTable:
    """Return the labels of some annotators; all items and annotators keep their codes."""
    own = annotators[table.annotator]
    return LabelTable.from_codes(
        table.item[own],
        table.annotator[own],
        table.label[own],
        n_items=table.n_items,
        n_annotators=table.n_annotators,
        n_classes=table.n_classes,
    )


def _triangle(place: NDArray[Any]) -> tuple[Index, Index]:
    """Return the k-th pair (smaller, larger) of (0, 1), (0, 2), (1, 2), (0, 3) and so on."""
    larger = ((1 + np.sqrt(8 * place + 1)) / 2).astype(np.int64)
    return place - larger * (larger - 1) // 2, larger
