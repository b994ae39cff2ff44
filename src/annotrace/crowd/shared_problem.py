"""A problem whose items are divided among several processes.

The E-step of an item needs its labels and the annotators. The M-step needs sums over all items:
counts of reports by true class, and class shares. Each process therefore keeps the labels of its
items, and the processes add up these sums, after which all of them have the same annotators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.label_index import best_dtype
from annotrace.crowd.problem import CrowdProblem
from annotrace.distributed import Processes
from annotrace.errors import InputError
from annotrace.labels.table import LabelTable


class SharedProblem(CrowdProblem):
    """The items of one process, with the sums of all processes.

    Parameters
    ----------
    table : LabelTable
        The labels of the items of this process; annotators and classes are those of all.
    gold : ndarray of int, shape (n_items,)
        The class of each of its gold items, -1 elsewhere.
    processes : Processes
    """

    def __init__(self, table: LabelTable, gold: NDArray[np.int32], processes: Processes) -> None:
        super().__init__(table, gold)
        self.processes = processes
        sizes = processes.add_up(torch.tensor([table.n_items, table.n_labels]))
        self.n_items, self.n_labels = sizes.tolist()
        self.dtype = best_dtype(self.n_labels)

    @property
    def is_comparable(self) -> bool:
        """Whether anything compares annotators: see `is_comparable`."""
        return self.processes.any(super().is_comparable)

    def check_whole(self, what: str) -> None:
        """Raise an `InputError`: other processes have the other items."""
        raise InputError(f"{what} in one process: start it without torchrun.")

    def label_counts(self, state: Tensor) -> Tensor:
        """Count reports by the states of all items."""
        return self.processes.add_up(super().label_counts(state).contiguous())

    def agreement(self, posterior: Tensor) -> Tensor:
        """Return how many labels of each annotator are correct, and how many there are."""
        return self.processes.add_up(super().agreement(posterior))

    def total(self, values: Tensor) -> Tensor:
        """Sum values (n_items, n) over all items with labels or a gold class, in float64, (n,)."""
        return self.processes.add_up(super().total(values))

    def fraction(self, items: Tensor) -> float:
        """Return the fraction of all items in a mask, BoolTensor of shape (n_items,)."""
        return float(self.processes.add_up(items.sum())) / self.n_items


def item_part(
    table: LabelTable, gold: NDArray[Any], rank: int, size: int
) -> tuple[LabelTable, NDArray[Any]]:
    """Return consecutive items with about one part in `size` of the labels, and their gold classes.

    Parameters
    ----------
    table : LabelTable
    gold : ndarray of shape (n_items,)
    rank, size : int
        The number of the part, from 0, and how many there are.
    """
    starts = np.searchsorted(table.offsets, table.n_labels * np.arange(size + 1) // size)
    starts[[0, -1]] = 0, table.n_items
    first, last = starts[rank], starts[rank + 1]
    labels = slice(table.offsets[first], table.offsets[last])
    part = LabelTable.from_codes(
        table.item[labels] - np.int32(first),
        table.annotator[labels],
        table.label[labels],
        n_items=int(last - first),
        n_annotators=table.n_annotators,
        n_classes=table.n_classes,
    )
    return part, gold[first:last]
