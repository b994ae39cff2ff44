"""Minibatches of items with their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from annotrace.data import ItemSource
from annotrace.labels import LabelTable

DIGEST_ROWS = 1_000


@dataclass(frozen=True)
class Batch:
    """Some items and all their labels, on the device.

    Attributes
    ----------
    inputs : Tensor of shape (n_rows, ...)
        As stored.
    item : LongTensor of shape (n_rows,)
        Which items these are.
    row, annotator, label : LongTensor of shape (n_labels,)
        The row of `inputs` that each label belongs to, who gave it, and what it says.
    """

    inputs: Tensor
    item: Tensor
    row: Tensor
    annotator: Tensor
    label: Tensor


class CrowdData:
    """What is labelled and its labels, ready to be cut into batches.

    Arrays in memory are put on the device once, in their stored type; other sources are loaded
    batch by batch.

    Parameters
    ----------
    source : ItemSource
        Row k is item k of the table.
    table : LabelTable
    device : torch.device
    """

    def __init__(self, source: ItemSource, table: LabelTable, device: torch.device) -> None:
        self.source, self.table, self.device = source, table, device
        held = getattr(source, "X", None)
        self._inputs = None if held is None else as_tensor(held).to(device)
        self._offsets = torch.from_numpy(table.offsets.copy()).to(device)
        self._annotator = torch.from_numpy(table.annotator.copy()).to(device)
        self._label = torch.from_numpy(table.label.copy()).to(device)

    def inputs(self, item: Tensor) -> Tensor:
        """Give the rows of some items as they are stored, shape (n_rows, ...)."""
        if self._inputs is not None:
            return self._inputs.index_select(0, item)
        return as_tensor(self.source.load(item.cpu().numpy())).to(self.device)

    @cached_property
    def digest(self) -> str:
        """What tells these items from others: their number, shape and type, and a sample."""
        rows = np.linspace(0, len(self.source) - 1, min(DIGEST_ROWS, len(self.source)))
        some = self.inputs(torch.from_numpy(rows.astype(np.int64)).to(self.device)).cpu().numpy()
        told = hashlib.sha256(repr((len(self.source), some.shape, some.dtype.str)).encode())
        told.update(some.tobytes())
        return told.hexdigest()

    @property
    def resident(self) -> bool:
        """Whether all inputs are on the device."""
        return self._inputs is not None

    def count_labels(self, items: Tensor, size: int) -> list[int]:
        """Give the number of labels in each batch that `items` are cut into."""
        counts = self._offsets[items + 1] - self._offsets[items]
        whole = F.pad(counts, (0, -len(items) % size))
        numbers: list[int] = whole.view(-1, size).sum(1).tolist()
        return numbers

    def labels(self, item: Tensor, n_labels: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Give the labels of some items: row (a position in `item`), annotator, label.

        Parameters
        ----------
        item : LongTensor of shape (n_rows,)
        n_labels : int, optional
            Their number, where it is known: a GPU need not be asked for it.
        """
        start = self._offsets[item]
        count = self._offsets[item + 1] - start
        row = torch.repeat_interleave(count, output_size=n_labels)
        before = count.cumsum(0) - count
        place = (start - before).index_select(0, row) + torch.arange(len(row), device=self.device)
        annotator = self._annotator.index_select(0, place).long()
        return row, annotator, self._label.index_select(0, place).long()

    def batch(self, item: Tensor, n_labels: int | None = None) -> Batch:
        """Give some items with their labels.

        Parameters
        ----------
        item : LongTensor of shape (n_rows,)
        n_labels : int, optional
            As in `labels`.
        """
        return Batch(self.inputs(item), item, *self.labels(item, n_labels))

    def batches(self, items: Tensor, size: int) -> Iterator[Batch]:
        """Cut items into batches, in the order given."""
        for part in items.split(size):
            yield self.batch(part)


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Give an array as a tensor: float64 as float32, the types torch lacks as those it has."""
    if array.dtype != np.uint8 and (array.dtype.kind in "bui" or array.itemsize > 4):
        array = array.astype(np.float32)
    # A copy where the caller's array cannot be written to, since torch warns of such arrays, or is
    # of the other byte order, which torch lacks.
    return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))
