"""EM over the cells that labels touch: (annotator, true class, reported class).

A confusion matrix per annotator has annotators x classes x classes cells, but n labels touch few of
them: those of the classes that an item may have. Both steps of EM then cost as much as there are
labels times such classes, however many annotators and classes there are.

The classes that an item may have are its *support*. On a support of all classes this is EM; on a
smaller one it raises the same lower bound among the posteriors that have all their mass there
(R. Neal and G. Hinton, A view of the EM algorithm that justifies incremental, sparse, and other
variants, 1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from annotrace.crowd.label_index import sum_bags
from annotrace.labels.table import LabelTable

Index = NDArray[np.integer[Any]]

# A class of an item with a smaller posterior leaves the support.
NEGLIGIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class Support:
    """The classes that each item may have, as pairs sorted by item.

    Attributes
    ----------
    item, true : ndarray of int, shape (n_pairs,)
    """

    item: Index
    true: Index

    @classmethod
    def from_posterior(cls, posterior: Tensor, uninformed: Tensor) -> Support:
        """Return the classes of each item that are not negligible.

        Parameters
        ----------
        posterior : Tensor of shape (n_items, n_classes)
            Gold items are certain.
        uninformed : Tensor of int
            Items of which nothing is known; they are left out.
        """
        likely = posterior > NEGLIGIBLE
        likely[uninformed] = False
        item, true = np.nonzero(likely.numpy())
        return cls(item.astype(np.int32), true.astype(np.int32))

    @classmethod
    def of_all_classes(cls, table: LabelTable, gold: NDArray[np.int32]) -> Support:
        """Return all classes of labelled items; of gold items the gold class alone."""
        likely = np.tile((table.labels_per_item() > 0)[:, None], table.n_classes)
        known = np.flatnonzero(gold >= 0)
        likely[known] = False
        likely[known, gold[known]] = True
        item, true = np.nonzero(likely)
        return cls(item.astype(np.int32), true.astype(np.int32))


class ReportCells:
    """The cells that the labels of a table touch, given the support of its items.

    Parameters
    ----------
    table : LabelTable
    support : Support
    dtype : torch.dtype
        Of the values that are summed.

    Attributes
    ----------
    code : Tensor of int64, shape (n_cells,)
        As in `CellCounts`, ascending.
    annotator, true, label : Tensor of int, shape (n_cells,)
    row : Tensor of int, shape (n_cells,)
        The row of a confusion matrix that each cell is in; rows are those that have cells.
    column : Tensor of int, shape (n_cells,)
        annotator * n_classes + label
    place : Tensor of int, shape (n_cells,)
        true * n_classes + label
    correct : Tensor of int, shape (n_correct,)
        The cells on the diagonal.
    pair_true : Tensor of int, shape (n_pairs,)
    derived : dict
        What a structure derives from the cells and keeps as long as they are.
    """

    def __init__(self, table: LabelTable, support: Support, dtype: torch.dtype) -> None:
        n, self.dtype = table.n_classes, dtype
        self._shape, self.support = (table.n_annotators, n), support
        self.derived: dict[str, Any] = {}
        code, self._cell, self._offsets = _touched(table, support)
        row, label = np.divmod(code, n)
        first = np.flatnonzero(np.diff(row, prepend=-1))
        self._first, self.n_rows, self.code = first, len(first), torch.from_numpy(code)
        self.row = _tensor(np.repeat(np.arange(len(first)), np.diff(first, append=len(row))))
        self.annotator, self.true, self.label = map(_tensor, (row // n, row % n, label))
        self.column = self.annotator * n + self.label
        self.place = self.true * n + self.label
        self.correct = _tensor(np.flatnonzero(self.true.numpy() == label))
        self.pair_true = _tensor(support.true)
        _, self._starts = np.unique(support.item, return_index=True)
        n_pairs = np.diff(self._starts, append=len(support.item))
        self._place = _tensor(np.repeat(np.arange(len(self._starts)), n_pairs))

    @cached_property
    def _by_cell(self) -> csr_matrix:
        shape = (len(self.support.item), len(self.code))
        ones = np.ones(len(self._cell), _NUMPY[self.dtype])
        by_pair = csr_matrix((ones, self._cell.numpy(), self._offsets.numpy()), shape)
        return by_pair.T.tocsr()

    def sum_by_pair(self, values: Tensor) -> Tensor:
        """Sum values of cells (n_cells, width) over the labels of each pair's item."""
        return sum_bags(self._cell, self._offsets, values)

    def counts(self, posterior: Tensor) -> Tensor:
        """Count the labels of each cell, each pair weighted by its posterior, (n_cells, width).

        Parameters
        ----------
        posterior : Tensor of shape (n_pairs, width)
        """
        sums: Tensor = torch.from_numpy(self._by_cell @ posterior.numpy())
        return sums

    def sum_rows(self, values: Tensor) -> Tensor:
        """Sum values of cells (n_cells,) over the cells of each row, (n_rows,)."""
        if len(values) == 0:
            return values
        return torch.from_numpy(np.add.reduceat(values.numpy(), self._first))

    def sum_columns(self, values: Tensor) -> Tensor:
        """Sum values of cells (n_cells,) over true classes, (n_annotators, n_classes)."""
        size = self._shape[0] * self._shape[1]
        return torch.bincount(self.column, values.double(), size).to(values.dtype).view(self._shape)

    def sum_classes(self, posterior: Tensor) -> Tensor:
        """Sum a posterior of pairs (n_pairs,) over items in float64, (n_classes,)."""
        return torch.bincount(self.pair_true, posterior.double(), self._shape[1])

    def normalize(self, log_joint: Tensor) -> tuple[Tensor, float]:
        """Return the posterior of each pair and the log evidence of all labels.

        Parameters
        ----------
        log_joint : Tensor of shape (n_pairs, width)
            log p(class, labels) of each pair in `width` states.
        """
        if len(log_joint) == 0:
            return log_joint, 0.0
        largest = np.maximum.reduceat(log_joint.amax(1).numpy(), self._starts)
        shift = torch.from_numpy(largest).index_select(0, self._place)
        posterior = (log_joint - shift[:, None]).exp_()
        total = torch.from_numpy(np.add.reduceat(posterior.sum(1).numpy(), self._starts))
        posterior /= total.index_select(0, self._place)[:, None]
        return posterior, float(total.log().sum(dtype=torch.float64) + largest.sum(dtype=float))

    def select(self, dense: Tensor) -> Tensor:
        """Return the entries of an array (n_items, n_classes) that are in the support, rescaled.

        Parameters
        ----------
        dense : Tensor of shape (n_items, n_states)
            State s is of class ``s % n_classes``.

        Returns
        -------
        Tensor of shape (n_pairs, n_states / n_classes)
            The states of an item sum to one.
        """
        by_class = dense.view(len(dense), -1, self._shape[1])
        chosen = by_class[_tensor(self.support.item), :, self.pair_true]
        total = np.add.reduceat(chosen.sum(1).numpy(), self._starts) if len(chosen) else np.ones(0)
        scale = torch.from_numpy(total).clamp(min=1e-30).index_select(0, self._place)
        return chosen / scale[:, None]


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _tensor(codes: Index) -> Tensor:
    return torch.from_numpy(codes.astype(np.int32))


def _touched(table: LabelTable, support: Support) -> tuple[Index, Tensor, Tensor]:
    """Return the codes of cells, the cell of each pair's labels, and where each pair begins."""
    n_labels = table.labels_per_item()[support.item]
    offsets = np.concatenate([[0], np.cumsum(n_labels)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_labels)
    place = within + np.repeat(table.offsets[support.item], n_labels)
    code = table.annotator[place].astype(np.int64) * table.n_classes
    code += np.repeat(support.true, n_labels)
    code *= table.n_classes
    code += table.label[place]
    found, cell = torch.unique(torch.from_numpy(code), return_inverse=True)
    return found.numpy(), cell.int(), _tensor(offsets)
