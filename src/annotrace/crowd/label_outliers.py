"""Confusion matrices with outliers: labels that their annotator's matrix does not explain.

An annotator mostly errs by a confusion matrix, whatever the item, but on some items differently. A
label by annotator r of item n then has, whatever the true class, the distribution::

    A(r)[i, :] + e(n, r),  where e(n, r) sums to zero over the reported classes

clipped to 0 and 1, and divided by its sum. Only pairs of an item and an annotator that have a label
have an e; all others are zero. A penalty keeps most of them near zero: see `COINNet`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.annotator_model import AnnotatorModel, check_integers
from annotrace.crowd.confusion import Confusion
from annotrace.crowd.sums import sum_groups

SMALLEST = 1e-10
"""Probabilities that outliers have made smaller, or negative, become this."""

LABELS_AT_ONCE = 2**16
SPARSE_ABOVE = 100_000
"""Weights above which updating the outliers of all labels costs more than finding those of a
batch."""


class LabelOutliers(nn.Module):
    """A vector that sums to zero for each labelled pair of an item and an annotator.

    Parameters
    ----------
    item, annotator : LongTensor of shape (n_labels,)
        The labels; a pair that is repeated has one vector.
    n_annotators, n_classes : int
    lr_scale : float
        Learning rate as a multiple of the network's.
    """

    key: Tensor

    def __init__(
        self,
        item: Tensor,
        annotator: Tensor,
        n_annotators: int,
        n_classes: int,
        lr_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.n_annotators, self.lr_scale = n_annotators, lr_scale
        self.register_buffer("key", torch.unique(item * n_annotators + annotator), persistent=False)
        self.weight = nn.Parameter(torch.zeros(len(self.key), n_classes))
        self.sparse = self.weight.numel() > SPARSE_ABOVE

    def forward(self, item: Tensor, annotator: Tensor) -> Tensor:
        """Return the vectors of pairs, zero for those without a label, (n, n_classes)."""
        if len(self.key) == 0:
            return self.weight.new_zeros(len(item), self.weight.shape[1])
        key = item * self.n_annotators + annotator
        place = torch.searchsorted(self.key, key).clamp_max(len(self.key) - 1)
        found = F.embedding(place, self.weight, sparse=self.sparse)
        found = found - found.mean(1, keepdim=True)
        return torch.where((self.key[place] == key)[:, None], found, 0.0)

    def mean_by_annotator(self, items: Tensor | None = None) -> Tensor:
        """Return the mean over labelled items of each annotator, (n_annotators, n_classes).

        Parameters
        ----------
        items : LongTensor, optional
            Count only these items.
        """
        annotator = self.key % self.n_annotators
        counted = self.weight.new_ones(len(self.key), 1)
        if items is not None:
            counted = torch.isin(self.key // self.n_annotators, items).to(counted)[:, None]
        centred = (self.weight - self.weight.mean(1, keepdim=True)) * counted
        (sums,) = sum_groups(torch.cat([centred, counted], 1), (annotator, self.n_annotators))
        return sums[:, :-1] / sums[:, -1:].clamp_min(1)


class OutlierConfusion(AnnotatorModel):
    """A confusion matrix per annotator, and outliers.

    Without items, an annotator's matrix includes the mean of the outliers of its labels.

    Parameters
    ----------
    nominal : Confusion
        The matrices without outliers.
    outliers : LabelOutliers
    """

    def __init__(self, nominal: Confusion, outliers: LabelOutliers) -> None:
        super().__init__()
        self.n_annotators, self.n_classes = nominal.n_annotators, nominal.n_classes
        self.nominal, self.outliers = nominal, outliers

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator[, item]), shape (n_labels, n_classes)."""
        check_integers(annotator=annotator, label=label)
        matrices = self.nominal.log_matrices().exp()
        if item is None:
            matrices = add_outliers(matrices, self.outliers.mean_by_annotator())
            return matrices[annotator, :, label].log()
        labels = torch.stack([item.long(), annotator.long(), label.long()])
        return torch.cat([self._of(matrices, *part) for part in labels.split(LABELS_AT_ONCE, 1)])

    def _of(self, matrices: Tensor, item: Tensor, annotator: Tensor, label: Tensor) -> Tensor:
        shifted = add_outliers(matrices[annotator], self.outliers(item, annotator))
        return shifted[torch.arange(len(label), device=label.device), :, label].log()

    @torch.no_grad()
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] without gradient."""
        outliers = self.outliers.mean_by_annotator(items)
        matrices = add_outliers(self.nominal.log_matrices().exp(), outliers)
        return matrices if annotators is None else matrices[annotators]

    def set_matrices(self, matrices: Tensor) -> None:
        """Start from matrices (n_annotators, n_classes, n_classes), without outliers."""
        self.nominal.set_matrices(matrices)


def add_outliers(probabilities: Tensor, outliers: Tensor) -> Tensor:
    """Return distributions plus outliers, clipped and divided by their sum.

    Parameters
    ----------
    probabilities : Tensor of shape (n, ..., n_classes)
    outliers : Tensor of shape (n, n_classes)
    """
    outliers = outliers.view(len(outliers), *[1] * (probabilities.dim() - 2), outliers.shape[1])
    shifted = (probabilities + outliers).clamp(SMALLEST, 1 - SMALLEST)
    return shifted / shifted.sum(-1, keepdim=True)
