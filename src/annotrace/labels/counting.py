"""Sizes of a label table, and how many labels items, annotators and classes have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from annotrace.labels.codes import count_codes, item_blocks
from annotrace.labels.vocabulary import Codes, Names


class LabelCounting:
    """The part of `LabelTable` that counts."""

    __slots__ = ()

    if TYPE_CHECKING:
        item: Codes
        annotator: Codes
        label: Codes
        items: Names
        annotators: Names
        classes: Names
        offsets: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """(n_items, n_annotators): the shape of the wide form, whose rows are items."""
        return self.n_items, self.n_annotators

    @property
    def n_items(self) -> int:
        """Number of items, with or without labels."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """Number of annotators, with or without labels."""
        return len(self.annotators)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label)

    def labels_per_item(self) -> NDArray[np.int64]:
        """Count the labels of each item, shape (n_items,)."""
        return np.diff(self.offsets)

    def labels_per_annotator(self) -> NDArray[np.int64]:
        """Count the labels of each annotator, shape (n_annotators,)."""
        return count_codes(self.annotator, self.n_annotators)

    def labels_per_class(self) -> NDArray[np.int64]:
        """Count the labels of each class, shape (n_classes,)."""
        return count_codes(self.label, self.n_classes)

    def votes(self, items: slice = slice(None)) -> NDArray[np.int64]:
        """Count the labels of consecutive items by class, shape (n_items, n_classes).

        Parameters
        ----------
        items : slice
            All items by default.
        """
        first, last, _ = items.indices(self.n_items)
        rows = slice(*self.offsets[[first, last]].tolist())
        cell = (self.item[rows] - np.int64(first)) * self.n_classes + self.label[rows]
        votes = np.bincount(cell, minlength=(last - first) * self.n_classes)
        return votes.astype(np.int64, copy=False).reshape(last - first, self.n_classes)

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Iterate over consecutive items and their labels, some millions at a time."""
        return item_blocks(self.offsets)
