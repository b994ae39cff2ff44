"""Counts of reports by annotator and true class, of which only those above zero are stored."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.sparse import csr_matrix
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts [annotator, true, reported] as a list of cells.

    Attributes
    ----------
    code : Tensor of int64, shape (n_cells,)
        (annotator * n_classes + true) * n_classes + reported; none occurs twice.
    count : Tensor of shape (n_cells,)
    n_annotators, n_classes : int
    """

    code: Tensor
    count: Tensor
    n_annotators: int
    n_classes: int

    @property
    def annotator(self) -> Tensor:
        """The annotator of each cell, shape (n_cells,)."""
        return self.code // self.n_classes**2

    @property
    def true(self) -> Tensor:
        """The true class of each cell, shape (n_cells,)."""
        return self.code // self.n_classes % self.n_classes

    @property
    def label(self) -> Tensor:
        """The class that each cell reports, shape (n_cells,)."""
        return self.code % self.n_classes

    def row_totals(self) -> Tensor:
        """Return the sums over reported classes, shape (n_annotators, n_classes)."""
        size = self.n_annotators * self.n_classes
        total = torch.bincount(self.code // self.n_classes, self.count.double(), size)
        return total.to(self.count.dtype).view(self.n_annotators, self.n_classes)

    def of_cells(self, code: Tensor) -> Tensor:
        """Return the counts of other cells, by their codes, shape (n,); codes here are sorted."""
        place = torch.searchsorted(self.code, code).clamp(max=len(self.code) - 1)
        return torch.where(self.code[place] == code, self.count[place], 0)

    def dense(self, annotators: Tensor) -> Tensor:
        """Return the counts of some annotators, shape (n, n_classes, n_classes)."""
        annotators = annotators.cpu().long()
        place = torch.full((self.n_annotators,), -1).scatter_(
            0, annotators, torch.arange(len(annotators))
        )
        own = place[self.annotator]
        cell = own * self.n_classes**2 + self.code % self.n_classes**2
        found = self.count.new_zeros(len(annotators) * self.n_classes**2)
        found[cell[own >= 0]] = self.count[own >= 0]
        # An annotator may be asked for twice.
        return found.view(-1, self.n_classes, self.n_classes)[place[annotators]]

    def columns(self) -> ReportColumns:
        """Return the columns of counts, for repeated use."""
        return ReportColumns(self)


class ReportColumns:
    """How often each annotator gave each label, by true class.

    Parameters
    ----------
    counts : CellCounts

    Attributes
    ----------
    rows : Tensor of shape (n_annotators, n_classes)
        The sums of the rows of annotators' matrices.
    """

    def __init__(self, counts: CellCounts) -> None:
        self.n_classes = counts.n_classes
        self.rows = counts.row_totals()
        answer = counts.annotator * counts.n_classes + counts.label
        entries = counts.count.numpy(), (answer.numpy(), counts.true.numpy())
        self._counts = csr_matrix(entries, shape=(self.rows.numel(), counts.n_classes))

    def of(self, annotator: Tensor, label: Tensor) -> Tensor:
        """Return the counts of labels by true class, shape (n_labels, n_classes).

        Parameters
        ----------
        annotator, label : Tensor of int, shape (n_labels,)
        """
        answer = annotator.long() * self.n_classes + label
        return torch.from_numpy(self._counts[answer.numpy()].toarray())
