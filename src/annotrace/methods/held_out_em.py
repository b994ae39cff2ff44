r"""Dawid-Skene whose matrices have never seen the item they judge.

Items are in folds. An item of fold k is judged by matrices counted on the other folds, and by a
prior of its own, p(class | features), from a classifier that learned from the other folds. Nothing
that judges an item has learned from its labels, so nothing gives an item's labels back to it::

    E: q_n(i)      ~ p_n(i)^(1/T) prod_r A^(-k(n))[r, i, label]
    M: A^(-k)[r, i] = (alpha_i + sum over items not in fold k) normalised

The matrices have a Dirichlet prior alpha that all annotators share; centre and strength are
learned (`dirichlet`). The temperature T is what makes the labels likeliest: it takes back what the
classifier is too sure or too unsure.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation.dirichlet import pool
from annotrace.aggregation.evidence import Evidence
from annotrace.aggregation.temperature import STARTING_STRENGTH, fit_temperature
from annotrace.labels.table import LabelTable

STEPS = 20
CALIBRATE_EVERY = 5


class HeldOutEM:
    """The EM of cross-fitting: matrices for each fold, from all others.

    Parameters
    ----------
    table : LabelTable
    fold : ndarray of shape (n_items,)
        From 0.
    gold : ndarray of shape (n_items,)
        The known class of each item, -1 where it is not known.

    Attributes
    ----------
    posterior : Tensor of shape (n_items, n_classes)
    temperature : float
    label_loss : float
        Negative log-likelihood of the labels, mean over labels.
    """

    def __init__(self, table: LabelTable, fold: NDArray[np.int64], gold: NDArray[np.int32]) -> None:
        self.n_folds = int(fold.max()) + 1
        self.shape = (table.n_annotators, table.n_classes, table.n_classes)
        # An annotator is one for each fold: then one pass counts, and one judges, for all folds.
        self.evidence = Evidence(_one_for_each_fold(table, fold, self.n_folds), gold)
        self.temperature = 1.0
        self.label_loss = float("inf")
        self.posterior = self.evidence.votes()

    def begin_with(self, posterior: Tensor) -> None:
        """Set the posterior that a classifier is to learn from, but for what is known."""
        self.posterior = self.evidence.set_gold(posterior.to(self.evidence.dtype))

    def start(self, truth: Tensor) -> None:
        """Count matrices from the classes that some other model gives, (n_items, n_classes)."""
        counts = self._count(truth.to(self.evidence.dtype))
        crowd = counts.sum((0, 1)) + 0.1
        self._prior = STARTING_STRENGTH * (crowd / crowd.sum(0))[None]
        self._learn(counts)

    def start_from(self, matrices: Tensor) -> None:
        """Begin with given matrices, (n_annotators, n_classes, n_classes), for every fold."""
        columns = matrices.to(self.evidence.dtype).transpose(1, 2).clamp(min=1e-4)
        crowd = columns.mean(0, keepdim=True)
        self._prior = STARTING_STRENGTH * crowd / crowd.sum(1, keepdim=True)
        self._columns = columns.repeat(self.n_folds, 1, 1)

    def run(self, logits: Tensor) -> None:
        """Find classes and matrices that agree, given what a classifier says of held-out items.

        Parameters
        ----------
        logits : Tensor of shape (n_items, n_classes)
        """
        logits = logits.to(self.evidence.dtype)
        for step in range(STEPS):
            labels = self.evidence.add_up(self._columns.log())
            if step % CALIBRATE_EVERY == 0:
                self.temperature = fit_temperature(self.evidence, logits, labels)[0]
            log_p = torch.log_softmax(logits / self.temperature, 1)
            self.posterior, log_evidence = self.evidence.normalise(labels.add_(log_p))
            counts = self._count(self.posterior)
            self._prior = pool(counts.sum(0), self._prior)
            self._learn(counts)
        self.label_loss = -log_evidence / self.evidence.table.n_labels

    def judge(self, logits: Tensor) -> float:
        """Give the loss of a label by a classifier, at its best temperature, as matrices stand."""
        labels = self.evidence.add_up(self._columns.log())
        loss = fit_temperature(self.evidence, logits.to(self.evidence.dtype), labels)[1]
        return loss / self.evidence.table.n_labels

    def matrices(self) -> Tensor:
        """Give the matrices by all labels, (n_annotators, n_classes, n_classes)."""
        columns = self._count(self.posterior).sum(0) + self._prior
        return (columns / columns.sum(1, keepdim=True)).transpose(1, 2).contiguous()

    def _count(self, truth: Tensor) -> Tensor:
        return self.evidence.count(truth).view(self.n_folds, *self.shape)

    def _learn(self, counts: Tensor) -> None:
        others = (counts.sum(0) - counts).clamp_(min=0) + self._prior
        self._columns = (others / others.sum(2, keepdim=True)).view(-1, *self.shape[1:])


def _one_for_each_fold(table: LabelTable, fold: NDArray[np.int64], n_folds: int) -> LabelTable:
    return LabelTable.from_codes(
        table.item,
        fold[table.item] * table.n_annotators + table.annotator,
        table.label,
        n_items=table.n_items,
        n_annotators=n_folds * table.n_annotators,
        n_classes=table.n_classes,
    )
