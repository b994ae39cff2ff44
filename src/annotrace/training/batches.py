"""Minibatches of items with their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from annotrace.data import ItemSource, TextSource
from annotrace.data.augmentation import Augmentation
from annotrace.distributed import current
from annotrace.labels import LabelTable
from annotrace.labels.codes import sort_within_items
from annotrace.networks.bags import Bags
from annotrace.training.randomness import Randomness

Inputs: TypeAlias = Tensor | Bags

DIGEST_ROWS = 1_000
EVALUATION_BATCH = 1024


@dataclass(frozen=True)
class Batch:
    """Items and all their labels, on the device.

    Attributes
    ----------
    inputs : Tensor of shape (n_rows, ...), or Bags
        In their stored type.
    item : LongTensor of shape (n_rows,)
        The item of each row.
    row, annotator, label : LongTensor of shape (n_labels,)
        The row of `inputs`, the annotator and the class of each label.
    """

    inputs: Inputs
    item: Tensor
    row: Tensor
    annotator: Tensor
    label: Tensor

    def take(self, rows: slice) -> Batch:
        """Return some rows with their labels."""
        place = torch.arange(len(self.item), device=self.item.device)[rows]
        new = torch.full_like(self.item, -1)
        new[place] = torch.arange(len(place), device=new.device)
        row = new[self.row]
        kept = row >= 0
        labels = (row[kept], self.annotator[kept], self.label[kept])
        return Batch(self.inputs[place], self.item[place], *labels)


class CrowdData:
    """Items and their labels, from which batches are made.

    Arrays in memory are copied to the device once, in their stored type; other sources are loaded
    batch by batch.

    Parameters
    ----------
    source : ItemSource
        Row k is item k of the table.
    table : LabelTable
    device : torch.device
    random : Randomness, optional
        Where everything that learns from these data draws random numbers; seed 0 by default.

    Attributes
    ----------
    processes : Processes
        Those that compute together. Each of them has all items and draws the same batches.
    augment : Augmentation or None
        Applied to the inputs of training batches.
    """

    augment: Augmentation | None = None

    def __init__(
        self,
        source: ItemSource,
        table: LabelTable,
        device: torch.device,
        random: Randomness | None = None,
    ) -> None:
        self.source, self.table, self.device = source, table, device
        self.processes = current()
        self.random = Randomness(0, device) if random is None else random
        self._inputs = _resident_inputs(source, device)
        self._offsets = torch.from_numpy(table.offsets.copy()).to(device)
        in_order = sort_within_items(table.offsets, table.annotator, table.label, table.n_classes)
        self._answers = torch.from_numpy(np.stack(in_order)).to(device)

    @classmethod
    def unlabelled(cls, source: ItemSource, table: LabelTable, device: torch.device) -> CrowdData:
        """Return items without labels, with the annotators and classes of a table."""
        none = np.empty(0, np.int32)
        sizes = {"n_annotators": table.n_annotators, "n_classes": table.n_classes}
        empty = LabelTable.from_codes(none, none, none, n_items=len(source), **sizes)
        return cls(source, empty, device)

    def inputs(self, item: Tensor) -> Inputs:
        """Return the inputs of items in their stored type, (n_rows, ...), or the bags of texts."""
        if self._inputs is not None:
            return self._inputs.index_select(0, item)
        return as_tensor(self.source.load(item.cpu().numpy())).to(self.device)

    @cached_property
    def digest(self) -> str:
        """A hash of the number, shape and type of the items, and of a sample of them."""
        rows = np.linspace(0, len(self.source) - 1, min(DIGEST_ROWS, len(self.source)))
        sample = self.inputs(torch.from_numpy(rows.astype(np.int64)).to(self.device)).cpu()
        digest = hashlib.sha256(repr((len(self.source), self.source.shape)).encode())
        parts = sample.tensors if isinstance(sample, Bags) else (sample,)
        for part in map(Tensor.numpy, parts):
            digest.update(part.dtype.str.encode() + part.tobytes())
        return digest.hexdigest()

    @property
    def resident(self) -> bool:
        """Whether all inputs are on the device, in rows of one size."""
        return isinstance(self._inputs, Tensor)

    def count_labels(self, items: Tensor, size: int) -> list[int]:
        """Return the number of labels in each batch of `size` consecutive items."""
        counts = self._offsets[items + 1] - self._offsets[items]
        padded = F.pad(counts, (0, -len(items) % size))
        totals: list[int] = padded.view(-1, size).sum(1).tolist()
        return totals

    def labels(self, item: Tensor, n_labels: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the labels of items: row (a position in `item`), annotator and label.

        Parameters
        ----------
        item : LongTensor of shape (n_rows,)
        n_labels : int, optional
            Their number, if known; it saves waiting for the GPU.
        """
        start = self._offsets[item]
        count = self._offsets[item + 1] - start
        row = torch.repeat_interleave(count, output_size=n_labels)
        first = count.cumsum(0) - count
        position = (start - first).index_select(0, row)
        position += torch.arange(len(row), device=self.device)
        annotator, label = self._answers.index_select(1, position).long()
        return row, annotator, label

    def batch(self, item: Tensor, n_labels: int | None = None) -> Batch:
        """Return items with their labels.

        Parameters
        ----------
        item : LongTensor of shape (n_rows,)
        n_labels : int, optional
            As in `labels`.
        """
        return Batch(self.inputs(item), item, *self.labels(item, n_labels))

    def training_batch(self, item: Tensor, n_labels: int | None = None) -> Batch:
        """Return items with their labels as in `batch`, their inputs augmented."""
        batch = self.batch(item, n_labels)
        if self.augment is None:
            return batch
        assert isinstance(batch.inputs, Tensor)
        return replace(batch, inputs=self.augment(batch.inputs, self.random.generator))

    def share(self, batch: Batch) -> Batch:
        """Return the rows of a training batch that this process computes."""
        if self.processes.size == 1:
            return batch
        return batch.take(self.processes.rows(len(batch.item))[0])

    def batches(self, items: Tensor, size: int = EVALUATION_BATCH) -> Iterator[Batch]:
        """Yield batches of at most `size` items, in the given order."""
        for item in items.split(size):
            yield self.batch(item)

    @torch.no_grad()
    def map(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a function of items, LongTensor of shape (n_rows,), to all of them in batches.

        Several processes divide the items, and all return the same.

        Returns
        -------
        Tensor of shape (n_items, ...)
            Without gradient.
        """
        n_items = len(self.source)
        items = torch.arange(n_items, device=self.device)[self.processes.part(n_items)]
        with self.random.lent():
            rows = torch.cat([function(item) for item in items.split(EVALUATION_BATCH)])
        return self.processes.all_rows(rows) if self.processes.divides(n_items) else rows


def _resident_inputs(source: ItemSource, device: torch.device) -> Inputs | None:
    if isinstance(source, TextSource):
        return Bags.from_matrix(source.ngrams).to(device)
    array = getattr(source, "X", None)
    return None if array is None else as_tensor(array).to(device)


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Return an array as a tensor; float32 replaces wider floats, integers and booleans."""
    if array.dtype != np.uint8 and (array.dtype.kind in "bui" or array.itemsize > 4):
        array = array.astype(np.float32)
    # Copies read-only arrays, about which torch warns, and the other byte order, which it lacks.
    return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))
