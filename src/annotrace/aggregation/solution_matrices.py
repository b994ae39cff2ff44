"""The confusion matrices that follow from a posterior: as an array, or by the cells of labels."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from annotrace.crowd.cell_counts import CellCounts, ReportColumns
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.report_cells import NEGLIGIBLE, ReportCells, Support

Array = NDArray[np.float64]
Index = NDArray[np.integer[Any]]

# Labels' worth of the pool that each row of a matrix starts with.
POOL_LABELS = 4.0
# What each cell of the pool starts with, and how much the cells of a row do together at most: more
# would hide that annotators agree where classes are many and have few labels each.
SMOOTHING, ROW_SMOOTHING = 0.1, 1.0
# Numbers that are looked up at most, for pairs of labels.
MAX_CELLS = 2e7
# Parts in which they are.
N_BLOCKS = 16


class SolutionMatrices(Protocol):
    """The matrices that a posterior of items implies.

    Attributes
    ----------
    accuracy : ndarray of shape (n_annotators,)
        How often labels are correct.
    max_pairs : int
        Pairs of labels whose agreement can be predicted at moderate cost.
    """

    accuracy: NDArray[Any]
    max_pairs: int

    def of_labels(self, annotator: Index, label: Index) -> NDArray[Any]:
        """Return p(label | true class, annotator), shape (n_labels, n_classes)."""

    def predict_agreement(self, one: Index, other: Index, truth: NDArray[Any]) -> NDArray[Any]:
        """Return how likely two annotators are to give the same label, shape (n_pairs,).

        Parameters
        ----------
        one, other : ndarray of int, shape (n_pairs,)
        truth : ndarray of shape (n_pairs, n_classes)
            The posterior of the item.
        """


class MatrixArray:
    """All matrices as an array; see `SolutionMatrices`.

    Parameters
    ----------
    problem : CrowdProblem
    posterior : Tensor of shape (n_items, n_classes)
    """

    def __init__(self, problem: CrowdProblem, posterior: Tensor) -> None:
        counts = problem.counts(posterior)
        pool = _pool(counts.sum(0))
        self.array: NDArray[Any] = matrices_from_counts(counts, pool).numpy()
        right = counts.diagonal(dim1=1, dim2=2).sum(1) / counts.sum((1, 2)).clamp(min=1e-12)
        self.accuracy: NDArray[Any] = right.numpy()
        self.max_pairs = int(MAX_CELLS / problem.shape[1] ** 2) + 1

    def of_labels(self, annotator: Index, label: Index) -> NDArray[Any]:
        """Return p(label | true class, annotator), shape (n_labels, n_classes)."""
        likelihood: NDArray[Any] = self.array[annotator, :, label]
        return likelihood

    def predict_agreement(self, one: Index, other: Index, truth: NDArray[Any]) -> NDArray[Any]:
        """Return how likely two annotators are to give the same label, shape (n_pairs,)."""
        agreement: NDArray[Any] = np.einsum(
            "nk,nkj,nkj->n", truth, self.array[one], self.array[other]
        )
        return agreement


class MatrixCells:
    """The cells of matrices that labels touch; see `SolutionMatrices`.

    Classes of an item with a negligible posterior are left out.

    Parameters
    ----------
    problem : CrowdProblem
        Without prior counts.
    posterior : Tensor of shape (n_items, n_classes)
    """

    def __init__(self, problem: CrowdProblem, posterior: Tensor) -> None:
        n_annotators, n, _ = problem.shape
        support = Support.from_posterior(posterior, problem.uninformed)
        cells = ReportCells(problem.table, support, problem.dtype)
        count = cells.counts(cells.select(posterior))[:, 0].double()
        self._counts = CellCounts(cells.code, count, n_annotators, n)
        pooled = torch.bincount(cells.place, count, n**2).view(n, n)
        self._pool: Array = _pool(pooled).numpy()
        total = torch.bincount(cells.annotator, count, n_annotators)
        right = count.index_select(0, cells.correct)
        who = cells.annotator.index_select(0, cells.correct)
        correct = torch.bincount(who, right, n_annotators)
        self.accuracy: NDArray[Any] = (correct / total.clamp(min=1e-12)).numpy()
        # What a pair costs: two rows for each class that the item may have.
        n_likely = len(support.item) / max(len(np.unique(support.item)), 1)
        length = torch.bincount(cells.row).double()
        n_found = float(length.square().sum() / length.sum().clamp(min=1))
        self.max_pairs = int(MAX_CELLS / max(n, 2 * n_likely * n_found)) + 1

    def of_labels(self, annotator: Index, label: Index) -> NDArray[Any]:
        """Return p(label | true class, annotator), shape (n_labels, n_classes)."""
        of = self._columns.of(*(torch.from_numpy(np.array(code)) for code in (annotator, label)))
        return (of.numpy() + self._pool.T[label]) / (self._totals[annotator] + POOL_LABELS)

    def predict_agreement(self, one: Index, other: Index, truth: NDArray[Any]) -> NDArray[Any]:
        """Return how likely two annotators are to give the same label, shape (n_pairs,)."""
        size = self.max_pairs // N_BLOCKS + 1
        parts = [
            self._predict_agreement(*(part[start : start + size] for part in (one, other, truth)))
            for start in range(0, len(one), size)
        ]
        return np.concatenate(parts)

    def _predict_agreement(self, one: Index, other: Index, truth: NDArray[Any]) -> NDArray[Any]:
        pair, true = np.nonzero(truth > NEGLIGIBLE)
        both = [self._rows(annotator[pair], true) for annotator in (one, other)]
        # Each row is counts plus the pool's, which has all classes: of the four products only
        # that of the pool with itself is not sparse.
        product = np.square(self._pool).sum(axis=1)[true] + both[0].multiply(both[1]).sum(1).A1
        for rows in both:
            entries = rows.tocoo()
            by_pool = entries.data * self._pool[true[entries.row], entries.col]
            product += np.bincount(entries.row, by_pool, len(pair))
        for annotator in (one, other):
            product /= self._totals[annotator[pair], true] + POOL_LABELS
        return np.bincount(pair, truth[pair, true] * product, len(truth))

    @cached_property
    def _columns(self) -> ReportColumns:
        return self._counts.columns()

    @property
    def _totals(self) -> NDArray[Any]:
        totals: NDArray[Any] = self._columns.rows.numpy()
        return totals

    @cached_property
    def _by_row(self) -> tuple[Index, csr_matrix]:
        """The codes of rows that have counts, and these rows; one without counts at the end."""
        n, code = self._counts.n_classes, self._counts.code.numpy()
        known, first = np.unique(code // n, return_index=True)
        starts = np.concatenate([first, [len(code)] * 2])
        rows = csr_matrix((self._counts.count.numpy(), code % n, starts), (len(known) + 1, n))
        return known, rows

    def _rows(self, annotator: Index, true: Index) -> csr_matrix:
        known, rows = self._by_row
        code = annotator.astype(np.int64) * self._counts.n_classes + true
        place = np.searchsorted(known, code)
        found = known[np.minimum(place, len(known) - 1)] == code
        return rows[np.where(found, place, len(known))]


def _pool(counts: Tensor) -> Tensor:
    """Return what each matrix starts with, from the counts of all annotators, [true, reported]."""
    smoothing = min(SMOOTHING, ROW_SMOOTHING / len(counts))
    return POOL_LABELS * matrices_from_counts(counts, smoothing)
