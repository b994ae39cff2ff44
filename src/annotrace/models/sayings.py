"""Who said what of which row, summed both ways: over a row, and over an annotator."""

from __future__ import annotations

import torch
from torch import Tensor

from annotrace.models.sums import MAX_MEMBERSHIP, add_up


class Sayings:
    """The labels of a batch.

    On a GPU they are a table, how often each row was called what by whom, that both sums are one
    product with: a step on a small network is the cost of its hundred kernels.

    Parameters
    ----------
    row, annotator, label : LongTensor of shape (n_labels,)
    n_rows, n_annotators, n_classes : int
    tabulate : bool, optional
        Whether to make the table: by default on a GPU, if it is not too large.

    Examples
    --------
    >>> row, annotator, label = torch.tensor([[0, 0, 1], [0, 1, 1], [0, 1, 1]])
    >>> sayings = Sayings(row, annotator, label, n_rows=2, n_annotators=2, n_classes=2)
    >>> sayings.counts(torch.tensor([[0.9, 0.1], [0.2, 0.8]]))[1]
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
        tabulate: bool | None = None,
    ) -> None:
        self._row, self._annotator, self._label = row, annotator, label
        self._shape = n_rows, n_annotators, n_classes
        size = n_rows * n_annotators * n_classes
        if tabulate is None:
            tabulate = row.is_cuda and size <= MAX_MEMBERSHIP
        self._table = None
        if tabulate:
            place = torch.add(self._said(), row, alpha=n_annotators * n_classes)
            table = torch.zeros(size, device=row.device)
            # Whole numbers, which come to the same in whatever order they are added.
            self._table = table.scatter_(0, place, 1.0, reduce="add")

    def _said(self) -> Tensor:
        """Give the number of what each label says among all that annotators can say."""
        return torch.add(self._label, self._annotator, alpha=self._shape[2])

    def evidence(self, log_p: Tensor, log_matrices: Tensor) -> Tensor:
        """Add to log p of each row the logarithms of what its labels say, (n_rows, n_classes).

        Parameters
        ----------
        log_p : Tensor of shape (n_rows, n_classes)
        log_matrices : Tensor of shape (n_annotators, n_classes, n_classes)
        """
        n_rows, _, n_classes = self._shape
        if self._table is None:
            columns = log_matrices[self._annotator, :, self._label]
            return add_up(columns, (self._row, n_rows))[0].add_(log_p)
        columns = log_matrices.transpose(1, 2).reshape(-1, n_classes)
        table = self._table.view(n_rows, -1).to(log_p.dtype)
        with torch.autocast(log_p.device.type, enabled=False):
            return torch.addmm(log_p, table, columns)

    def counts(self, posterior: Tensor) -> Tensor:
        """Sum posteriors of rows over what was said of them: counts [annotator, true, reported].

        Parameters
        ----------
        posterior : Tensor of shape (n_rows, n_classes)
        """
        _, n_annotators, n_classes = self._shape
        if self._table is None:
            said = self._said(), n_annotators * n_classes
            (sums,) = add_up(posterior.index_select(0, self._row), said)
            return sums.view(n_annotators, n_classes, n_classes).transpose(1, 2)
        by_annotator = self._table.view(self._shape).to(posterior.dtype).transpose(0, 1)
        with torch.autocast(posterior.device.type, enabled=False):
            return posterior.t().expand(n_annotators, -1, -1) @ by_annotator
