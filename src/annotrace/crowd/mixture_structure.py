r"""Confusion matrices of low rank: each annotator mixes a few matrices that all share.

.. math:: A^{(r)} = \sum_f w_{rf} B_f = B_0 + \sum_{f > 0} w_{rf} (B_f - B_0)

with weights that sum to one: the pool's first matrix plus a deviation of rank k. An annotator has k
free parameters, whatever the number of classes. Learned by EM: a label comes from one of the shared
matrices, and which is latent.
"""

from __future__ import annotations

import torch
from torch import Tensor

from annotrace.crowd.cell_structures import OWN_WEIGHT, CellStructure
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.report_cells import ReportCells

SMALLEST = 1e-12
# Labels' worth of prior on each row of a shared matrix, half of it on the diagonal.
ROW_WEIGHT = 1.0


class MixtureStructure(CellStructure):
    """Mixtures of shared confusion matrices.

    Parameters
    ----------
    n_annotators, n_classes : int
    rank : int
        Of the deviation from the first shared matrix.
    dtype : torch.dtype
    """

    weight: Tensor
    shared: Tensor

    def __init__(
        self, n_annotators: int, n_classes: int, rank: int, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        self.n_annotators, self.n_classes = n_annotators, n_classes
        start = _initial_matrices(rank + 1, n_classes).to(dtype)
        self.register_buffer("shared", start)
        self.register_buffer("weight", start.new_full((n_annotators, rank + 1), 1 / (rank + 1)))

    def update(self, cells: ReportCells, counts: Tensor) -> None:
        """Divide counts among the shared matrices, and learn weights and matrices from them."""
        joint = self._joint(cells)
        joint *= (counts / joint.sum(1).clamp(min=SMALLEST))[:, None]
        prior = OWN_WEIGHT / joint.shape[1]
        weight = [
            torch.bincount(cells.annotator, part.double(), self.n_annotators) + prior
            for part in joint.unbind(1)
        ]
        self.weight = matrices_from_counts(torch.stack(weight, 1)).to(self.weight.dtype)
        for matrix, part in zip(self.shared, joint.unbind(1), strict=True):
            own = torch.bincount(cells.place, part.double(), matrix.numel()).view_as(matrix)
            matrix.copy_(matrices_from_counts(own + self._row_prior()))

    def expect(self, cells: ReportCells) -> tuple[Tensor, Tensor]:
        """Return the log-likelihood of cells, and the log density of weights and matrices."""
        logs = self._joint(cells).sum(1).clamp_(min=SMALLEST).log_()
        density = OWN_WEIGHT / self.weight.shape[1] * self.weight.log().sum(dtype=torch.float64)
        log_shared = self.shared.clamp(min=SMALLEST).log_()
        return logs, density + (self._row_prior() * log_shared).sum(dtype=torch.float64)

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), shape (n_labels, n_classes)."""
        total = self.weight.new_zeros(len(label), self.n_classes)
        for matrix, weight in zip(self.shared, self.weight[annotator.long()].t(), strict=True):
            columns = matrix.t().contiguous()
            total.addcmul_(columns.index_select(0, label), weight[:, None])
        return total.clamp_(min=SMALLEST).log_()

    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported]."""
        weight = self.weight if annotators is None else self.weight[annotators.long()]
        matrices: Tensor = torch.tensordot(weight, self.shared, 1)
        return matrices

    def _joint(self, cells: ReportCells) -> Tensor:
        """Return p(matrix, report | true class) of each cell, shape (n_cells, rank + 1)."""
        joint = [
            matrix.flatten().index_select(0, cells.place) * weight.index_select(0, cells.annotator)
            for matrix, weight in zip(self.shared, self.weight.t().contiguous(), strict=True)
        ]
        return torch.stack(joint, 1)

    def _row_prior(self) -> Tensor:
        same = torch.eye(self.n_classes, dtype=self.shared.dtype)
        same += 1 / self.n_classes
        return same.mul_(ROW_WEIGHT / 2)


def _initial_matrices(n: int, n_classes: int) -> Tensor:
    """Return an annotator who is right, one who guesses, and others who err at random."""
    generator = torch.Generator().manual_seed(0)
    same = torch.eye(n_classes)
    diagonal = [0.9, 0.1] + [0.6] * n
    found: list[Tensor] = []
    for right in diagonal[:n]:
        errors = torch.rand(n_classes, n_classes, generator=generator) ** 2 + 0.1
        if len(found) < len((0.9, 0.1)):
            errors = torch.ones(n_classes, n_classes)
        found.append(right * same + (1 - right) * matrices_from_counts(errors))
    return torch.stack(found)
