"""The trace-regularised model on folds: the first networks of cross-fitted EM.

Each network learns with matrices of its own, from the labels of all other folds. So its predictions
for its own fold are out of fold, and no epoch needs to be chosen by a few held-out items: those of
all folds count.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.losses import trace_regularized_nll
from annotrace.labels import LabelTable
from annotrace.training import Batch, Mixture

LAM = 0.01
DIAGONAL = 0.7
LR_SCALE = 30.0
"""Those of `TraceRegularized`, which docs/methods.md explains."""

MAX_CELLS = 50_000_000
"""Cells of the matrices of all folds above which the first networks learn from labels alone."""


def fits(table: LabelTable, n_folds: int) -> bool:
    """Whether matrices of all annotators and folds are small enough to be learned."""
    return n_folds * table.n_annotators * table.n_classes**2 <= MAX_CELLS


class TraceLoss:
    """The trace-regularised loss, summed over networks, of the labels outside each fold.

    Parameters
    ----------
    table : LabelTable
    fold : LongTensor of shape (n_items,)
    annotators : AnnotatorModel
        Annotator r of network k is number k * n_annotators + r.
    gold : LongTensor of shape (n_items,), optional
        The class of each gold item, -1 elsewhere.
    """

    def __init__(
        self, table: LabelTable, fold: Tensor, annotators: AnnotatorModel, gold: Tensor | None
    ) -> None:
        self._n_annotators, self._fold = table.n_annotators, fold
        self._annotators, self._gold = annotators, gold
        self._n_folds = annotators.n_annotators // table.n_annotators
        self._networks = torch.arange(self._n_folds, device=fold.device)[:, None]
        self._joint = bool((table.labels_per_item() > 1).any())

    def __call__(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return the loss of the rows of a batch."""
        n_rows = len(batch.item)
        network = (self._fold[batch.item[batch.row]] + self._networks[1:]) % self._n_folds
        row = (network * n_rows + batch.row).flatten()
        annotator = (network * self._n_annotators + batch.annotator).flatten()
        label = batch.label.repeat(self._n_folds - 1)
        total = self._n_folds * trace_regularized_nll(
            logits.flatten(0, 1), self._annotators, row, annotator, label, LAM, joint=self._joint
        )
        return total if self._gold is None else total + self._gold_loss(batch, logits, self._gold)

    def mixed(self, batch: Batch, logits: Tensor, mixture: Mixture) -> Tensor:
        """Return the loss of mixtures of two rows: the mean of both losses, by their weights."""
        # The loss needs no inputs, and those of texts take long to permute.
        partners = mixture.partners(replace(batch, inputs=batch.item))
        return torch.lerp(self(partners, logits), self(batch, logits), mixture.weight)

    def _gold_loss(self, batch: Batch, logits: Tensor, gold: Tensor) -> Tensor:
        """Return the cross-entropy of gold items outside each fold."""
        known = gold[batch.item].repeat(self._n_folds, 1)
        known = known.masked_fill(self._fold[batch.item] == self._networks, -1).flatten()
        right = F.cross_entropy(
            logits.flatten(0, 1).float(), known, ignore_index=-1, reduction="sum"
        )
        return right / len(batch.item)


def held_out_losses(
    table: LabelTable, fold: NDArray[np.int64], logits: Tensor, matrices: Tensor
) -> NDArray[np.float64]:
    """Return the loss per label of each network on the labels of its own fold, (n_folds,).

    Labels that a network has learned from do not tell how good its matrices are. Judged by the
    labels of all folds, the best was another on two crowds of mostly wrong labels, from which the
    classifier reached .74 and .82, and not .92 and .98.

    Parameters
    ----------
    table : LabelTable
    fold : ndarray of shape (n_items,)
    logits : Tensor of shape (n_items, n_classes)
        Out of fold.
    matrices : Tensor of shape (n_folds, n_annotators, n_classes, n_classes)
    """
    own = torch.from_numpy(fold[table.item])
    item, annotator, label = (
        torch.tensor(codes).long() for codes in (table.item, table.annotator, table.label)
    )
    log_p = torch.log_softmax(logits.double(), 1)[item]
    likelihood = matrices.double()[own, annotator, :, label].clamp_min(1e-12).log()
    loss = -(log_p + likelihood).logsumexp(1)
    n_folds = len(matrices)
    total = np.bincount(own.numpy(), weights=loss.numpy(), minlength=n_folds)
    return np.asarray(total / np.maximum(np.bincount(own.numpy(), minlength=n_folds), 1))
