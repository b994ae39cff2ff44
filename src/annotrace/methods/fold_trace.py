"""The trace-regularised model on folds: the first networks of cross-fitted EM.

Each network learns with matrices of its own, from the labels of all other folds. So its predictions
for its own fold are out of fold, and no epoch needs to be chosen by a few held-out items: those of
all folds count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.losses import trace_regularized_nll
from annotrace.labels import LabelTable
from annotrace.training import Batch

LAM = 0.01
DIAGONAL = 0.7
LR_SCALE = 30.0
"""Those of `TraceRegularized`, which docs/methods.md explains."""

MAX_CELLS = 50_000_000
"""Cells of the matrices of all folds above which the first networks learn from labels alone."""


def fits(table: LabelTable, n_folds: int) -> bool:
    """Whether matrices of all annotators and folds are small enough to be learned."""
    return n_folds * table.n_annotators * table.n_classes**2 <= MAX_CELLS


def trace_loss(
    table: LabelTable, fold: Tensor, annotators: AnnotatorModel, gold: Tensor | None
) -> Callable[[Batch, Tensor], Tensor]:
    """Return the trace-regularised loss, summed over networks, of the labels outside each fold.

    Parameters
    ----------
    table : LabelTable
    fold : LongTensor of shape (n_items,)
    annotators : AnnotatorModel
        Annotator r of network k is number k * n_annotators + r.
    gold : LongTensor of shape (n_items,), optional
        The class of each gold item, -1 elsewhere.
    """
    n_folds = annotators.n_annotators // table.n_annotators
    others = torch.arange(1, n_folds, device=fold.device)[:, None]
    every = torch.arange(n_folds, device=fold.device)[:, None]
    joint = bool((table.labels_per_item() > 1).any())

    def loss(batch: Batch, logits: Tensor) -> Tensor:
        n_rows = len(batch.item)
        network = (fold[batch.item[batch.row]] + others) % n_folds
        row = (network * n_rows + batch.row).flatten()
        annotator = (network * table.n_annotators + batch.annotator).flatten()
        label = batch.label.repeat(n_folds - 1)
        total = n_folds * trace_regularized_nll(
            logits.flatten(0, 1), annotators, row, annotator, label, LAM, joint=joint
        )
        if gold is None:
            return total
        known = gold[batch.item].repeat(n_folds, 1)
        known = known.masked_fill(fold[batch.item] == every, -1).flatten()
        right = F.cross_entropy(
            logits.flatten(0, 1).float(), known, ignore_index=-1, reduction="sum"
        )
        return total + right / n_rows

    return loss


def held_out_losses(
    table: LabelTable, fold: NDArray[np.int64], logits: Tensor, matrices: Tensor
) -> NDArray[np.float64]:
    """Return the loss per label of each network on the labels of its own fold, (n_folds,).

    Parameters
    ----------
    table : LabelTable
    fold : ndarray of shape (n_items,)
    logits : Tensor of shape (n_items, n_classes)
        Out of fold.
    matrices : Tensor of shape (n_folds, n_annotators, n_classes, n_classes)
    """
    own = torch.from_numpy(fold[table.item])
    annotator, label = (torch.tensor(codes).long() for codes in (table.annotator, table.label))
    log_p = torch.log_softmax(logits.double(), 1)[torch.tensor(table.item).long()]
    likelihood = matrices.double()[own, annotator, :, label].clamp_min(1e-12).log()
    loss = -(log_p + likelihood).logsumexp(1)
    n_folds = len(matrices)
    total = np.bincount(own.numpy(), weights=loss.numpy(), minlength=n_folds)
    return np.asarray(total / np.maximum(np.bincount(own.numpy(), minlength=n_folds), 1))
