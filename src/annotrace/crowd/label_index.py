"""Labels indexed for the two sums of EM: over the labels of an item, and of an annotator.

Both sums are over bags of labels. Sorted by item, the E-step adds up rows of log-likelihoods;
sorted by (annotator, label), the M-step adds up rows of posteriors. Nothing of size items x
annotators is made.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import embedding_bag

from annotrace.crowd.sums import MAX_MEMBERSHIP, add_to_groups, sum_groups
from annotrace.labels.codes import sort_within_items
from annotrace.labels.table import LabelTable

# embedding_bag has a fast path in float32 only: 5 million labels take 0.05 s, and 0.8 s in float64,
# where scipy.sparse takes half of that. Up to this number of labels float64 is affordable.
FLOAT64_UP_TO = 100_000
# Sums of more numbers are made in parts.
LARGE = 2**21


def best_dtype(n_labels: int) -> torch.dtype:
    """Return the number type in which EM over so many labels is best done."""
    return torch.float64 if n_labels <= FLOAT64_UP_TO else torch.float32


class LabelIndex:
    """The labels of some items: of a whole table, or of a minibatch.

    Parameters
    ----------
    row, annotator, label : LongTensor of shape (n_labels,)
        The row of the item that each label belongs to, who gave it, and the class reported.
    n_rows, n_annotators, n_classes : int
    item : LongTensor of shape (n_rows,), optional
        The item of each row, for models that depend on it; its row by default.
    offsets : Tensor of shape (n_rows + 1,), optional
        Where the labels of each row begin, if they are sorted by row.
    tabulate : bool, optional
        Whether to count labels in a dense table (n_rows, n_annotators, n_classes), with which both
        sums are one matrix product: by default on a GPU, where a step on a small network costs as
        much as its number of kernels, if the table is not too large.

    Attributes
    ----------
    dtype : torch.dtype
        The number type in which EM over these labels is best done.

    Examples
    --------
    >>> row, annotator, label = torch.tensor([[0, 0, 1], [0, 1, 1], [0, 1, 1]])
    >>> labels = LabelIndex(row, annotator, label, n_rows=2, n_annotators=2, n_classes=2)
    >>> labels.counts(torch.tensor([[0.9, 0.1], [0.2, 0.8]]))[1]
    tensor([[0.0000, 1.1000],
            [0.0000, 0.9000]])
    """

    def __init__(
        self,
        row: Tensor,
        annotator: Tensor,
        label: Tensor,
        n_rows: int,
        n_annotators: int,
        n_classes: int,
        *,
        item: Tensor | None = None,
        offsets: Tensor | None = None,
        tabulate: bool | None = None,
    ) -> None:
        self.row, self.annotator, self.label = row, annotator, label
        self.n_rows, self.n_annotators, self.n_classes = n_rows, n_annotators, n_classes
        self.item = torch.arange(n_rows, device=row.device) if item is None else item
        self.dtype = best_dtype(len(row))
        self._offsets = offsets
        size = n_rows * n_annotators * n_classes
        if tabulate is None:
            tabulate = row.is_cuda and size <= MAX_MEMBERSHIP
        self._table = self._tabulate(size) if tabulate else None

    @classmethod
    def from_table(cls, table: LabelTable, device: torch.device | None = None) -> LabelIndex:
        """Index all labels of a table; row k is item k."""
        on_cpu = device is None or device.type == "cpu"
        sizes = table.n_items, table.n_annotators, table.n_classes
        in_order = sort_within_items(table.offsets, table.annotator, table.label, table.n_classes)
        row, annotator, label = (
            torch.from_numpy(codes).to(device) for codes in (table.item.copy(), *in_order)
        )
        offsets = torch.from_numpy(table.offsets.astype(np.int32)) if on_cpu else None
        return cls(row, annotator, label, *sizes, offsets=offsets)

    def head(self, n_labels: int) -> LabelIndex:
        """Return about the first `n_labels` labels, those of whole rows, of a table."""
        assert self._offsets is not None
        n_rows = int(torch.searchsorted(self._offsets, n_labels, right=True)) - 1
        stop = int(self._offsets[n_rows])
        return LabelIndex(
            self.row[:stop],
            self.annotator[:stop],
            self.label[:stop],
            n_rows,
            self.n_annotators,
            self.n_classes,
            offsets=self._offsets[: n_rows + 1],
        )

    def sum_by_item(self, values: Tensor) -> Tensor:
        """Sum values (n_labels, width) over the labels of each item, (n_rows, width)."""
        return sum_groups(values, (self.row, self.n_rows))[0]

    def sum_rows(self, rows: Tensor, index: Tensor) -> Tensor:
        """Sum over the labels of each item the rows that they select, (n_rows, width).

        Parameters
        ----------
        rows : Tensor of shape (n, width)
        index : Tensor of int, shape (n_labels,)
        """
        if self._offsets is not None and not rows.requires_grad:
            return sum_bags(index, self._offsets, rows)
        return self.sum_by_item(rows.index_select(0, index))

    def sum_matrices(self, matrices: Tensor, start: Tensor | None = None) -> Tensor:
        """Sum over the labels of each item the cells of matrices that they select.

        Parameters
        ----------
        matrices : Tensor of shape (n_annotators, n_states, n_classes)
            [annotator, true, reported]; states are the true classes, or classes in several states.
        start : Tensor of shape (n_rows, n_states), optional
            What to add to the sums.

        Returns
        -------
        Tensor of shape (n_rows, n_states)
        """
        columns = matrices.transpose(1, 2).reshape(-1, matrices.shape[1])
        if self._table is not None:
            return self._multiply(columns, start)
        sums = self.sum_rows(columns, self._answer)
        return sums if start is None else sums.add_(start)

    def sum_votes(self, weights: Tensor) -> Tensor:
        """Sum the weights of annotators by item and by the class reported, (n_rows, n_classes).

        Parameters
        ----------
        weights : Tensor of shape (n_annotators,)
        """
        votes = weights.new_zeros(self.n_rows * self.n_classes)
        parts = (part.split(LARGE) for part in (self.row, self.annotator, self.label))
        for row, annotator, label in zip(*parts, strict=True):
            cell = row.long() * self.n_classes + label
            add_to_groups(votes, weights.index_select(0, annotator), cell)
        return votes.view(self.n_rows, self.n_classes)

    def counts(self, posterior: Tensor) -> Tensor:
        """Count reports by true class, each item weighted by its posterior (the M-step's sum).

        Parameters
        ----------
        posterior : Tensor of shape (n_rows, n_states)

        Returns
        -------
        Tensor of shape (n_annotators, n_states, n_classes)
            [annotator, true, reported].
        """
        if self._table is not None:
            by_annotator = self._table.to(posterior.dtype).transpose(0, 1)
            with torch.autocast(posterior.device.type, enabled=False):
                return posterior.t().expand(self.n_annotators, -1, -1) @ by_annotator
        if self._offsets is not None:
            sums = sum_bags(*self._by_answer, posterior)
        else:
            answers = self._answer, self.n_annotators * self.n_classes
            (sums,) = sum_groups(posterior.index_select(0, self.row), answers)
        return sums.view(self.n_annotators, self.n_classes, -1).transpose(1, 2)

    @cached_property
    def _answer(self) -> Tensor:
        """The answer that each label is, annotator * n_classes + label, shape (n_labels,)."""
        return torch.add(self.label, self.annotator, alpha=self.n_classes)

    @cached_property
    def _by_answer(self) -> tuple[Tensor, Tensor]:
        """Rows sorted by answer, and where each answer begins (a counting sort, by scipy)."""
        assert self._offsets is not None
        ones = np.ones(len(self.row), np.int8)
        by_row = (ones, self._answer.numpy(), self._offsets.numpy())
        shape = (self.n_rows, self.n_annotators * self.n_classes)
        by_answer = csr_matrix(by_row, shape=shape).tocsc()
        return torch.from_numpy(by_answer.indices), torch.from_numpy(by_answer.indptr)

    def _tabulate(self, size: int) -> Tensor:
        place = torch.add(self._answer, self.row, alpha=self.n_annotators * self.n_classes)
        table = torch.zeros(size, device=self.row.device)
        # Whole numbers add up to the same in any order.
        table.scatter_(0, place, 1.0, reduce="add")
        return table.view(self.n_rows, self.n_annotators, self.n_classes)

    def _multiply(self, columns: Tensor, start: Tensor | None) -> Tensor:
        assert self._table is not None
        table = self._table.view(self.n_rows, -1).to(columns.dtype)
        with torch.autocast(columns.device.type, enabled=False):
            return table @ columns if start is None else torch.addmm(start, table, columns)


def sum_bags(index: Tensor, offsets: Tensor, rows: Tensor) -> Tensor:
    """Sum the rows that each bag selects; bag k is ``index[offsets[k] : offsets[k + 1]]``."""
    n_bags, width = len(offsets) - 1, rows.shape[1]
    if rows.dtype != torch.float32:
        bags = (np.ones(len(index)), index.numpy(), offsets.numpy())
        return torch.from_numpy(csr_matrix(bags, shape=(n_bags, len(rows))) @ rows.numpy())
    if n_bags * width <= LARGE:
        return _embedding_sums(index, offsets, rows)
    sums, step = _empty(n_bags, width), max(LARGE // width, 1)
    for start in range(0, n_bags, step):
        own = offsets[start : start + step + 1]
        part = index[own[0] : own[-1]]
        sums[start : start + step] = _embedding_sums(part, own - own[0], rows)
    return sums


def _embedding_sums(index: Tensor, offsets: Tensor, rows: Tensor) -> Tensor:
    return embedding_bag(index, rows, offsets, mode="sum", include_last_offset=True)


def _empty(n_rows: int, width: int) -> Tensor:
    """Return memory for many numbers, which numpy asks the system for in large pages.

    Of 40 MB, pages of 4 kB take 15 ms, as long as to sum five million labels.
    """
    return torch.from_numpy(np.empty((n_rows, width), np.float32))
