r"""Dawid-Skene whose matrices have not seen the item they are applied to.

Items are in folds. The posterior of an item of fold k uses matrices counted on the other folds and
a prior of its own, p(class | features), from a classifier trained on the other folds. Nothing that
judges an item has learned from its labels, so nothing returns an item's labels to it::

    E: q_n(i)      ~ p_n(i)^(1/T) prod_r A^(-k(n))[r, i, label]
    M: A^(-k)[r, i] = (alpha_i + sum over items not in fold k) normalised

The matrices have a Dirichlet prior alpha that all annotators share; its centre and strength are
learned (`annotrace.crowd.dirichlet`). The temperature T makes the labels most likely: it corrects a
classifier that is overconfident or underconfident.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.dirichlet import initial_pool, update_pool
from annotrace.crowd.em import matrices_from_counts, posterior
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.temperature import fit_temperature, tempered_e_step
from annotrace.labels.table import LabelTable

N_ITER = 20
CALIBRATE_EVERY = 5


class HeldOutEM:
    """The EM of cross-fitting: matrices for each fold, counted on all others.

    Parameters
    ----------
    table : LabelTable
    fold : ndarray of shape (n_items,)
        From 0.
    gold : ndarray of shape (n_items,)
        The class of each gold item, -1 elsewhere.

    Attributes
    ----------
    posterior : Tensor of shape (n_items, n_classes)
    temperature : float
    label_loss : float
        Negative log-likelihood per label.
    """

    def __init__(self, table: LabelTable, fold: NDArray[np.int64], gold: NDArray[np.int32]) -> None:
        self.n_folds = int(fold.max()) + 1
        self.shape = (table.n_annotators, table.n_classes, table.n_classes)
        # One annotator per fold and annotator: then one pass counts, and one infers, for all folds.
        self.problem = CrowdProblem(_annotators_by_fold(table, fold, self.n_folds), gold)
        self.temperature = 1.0
        self.label_loss = float("inf")
        self.posterior = self.problem.votes()

    def set_posterior(self, posterior: Tensor) -> None:
        """Set the posterior that a classifier is to learn from; gold items stay certain."""
        self.posterior = self.problem.set_gold(posterior.to(self.problem.dtype))

    def count_matrices(self, truth: Tensor) -> None:
        """Start with matrices counted from class probabilities, (n_items, n_classes)."""
        counts = self._counts(truth.to(self.problem.dtype))
        self._prior = initial_pool(counts.sum((0, 1))[None] + 0.1)
        self._update_matrices(counts)

    def set_matrices(self, matrices: Tensor) -> None:
        """Start with given matrices, (n_annotators, n_classes, n_classes), for every fold."""
        matrices = matrices.to(self.problem.dtype).clamp(min=1e-4)
        self._prior = initial_pool(matrices)
        self._held_out = matrices.repeat(self.n_folds, 1, 1)

    def run(self, logits: Tensor) -> None:
        """Alternate between posterior and matrices, given out-of-fold logits.

        Parameters
        ----------
        logits : Tensor of shape (n_items, n_classes)
        """
        logits = logits.to(self.problem.dtype)
        for step in range(N_ITER):
            likelihood = self._likelihood()
            if step % CALIBRATE_EVERY == 0:
                self.temperature = fit_temperature(self.problem, logits, likelihood)[0]
            self.posterior, log_evidence = tempered_e_step(
                self.problem, logits, likelihood, self.temperature
            )
            counts = self._counts(self.posterior)
            self._prior = update_pool(counts.sum(0), self._prior)
            self._update_matrices(counts)
        self.label_loss = -log_evidence / self.problem.table.n_labels

    def without_gold(self, logits: Tensor) -> Tensor:
        """Return the posterior of all items by their labels and features, gold or not."""
        log_prior = torch.log_softmax(logits.to(self.problem.dtype) / self.temperature, 1)
        return posterior(log_prior, self._likelihood())

    def score(self, logits: Tensor) -> float:
        """Return the loss per label of a classifier at its best temperature, matrices fixed."""
        logits = logits.to(self.problem.dtype)
        loss = fit_temperature(self.problem, logits, self._likelihood())[1]
        return loss / self.problem.table.n_labels

    def matrices(self) -> Tensor:
        """Return the matrices by all labels, (n_annotators, n_classes, n_classes)."""
        return matrices_from_counts(self._counts(self.posterior).sum(0), self._prior).contiguous()

    def _likelihood(self) -> Tensor:
        return self.problem.labels.sum_matrices(self._held_out.log())

    def _counts(self, truth: Tensor) -> Tensor:
        """Return counts by fold, (n_folds, n_annotators, n_classes, n_classes)."""
        return self.problem.counts(truth).view(self.n_folds, *self.shape)

    def _update_matrices(self, counts: Tensor) -> None:
        others = (counts.sum(0) - counts).clamp_(min=0)
        self._held_out = matrices_from_counts(others, self._prior).flatten(0, 1)


def _annotators_by_fold(table: LabelTable, fold: NDArray[np.int64], n_folds: int) -> LabelTable:
    return LabelTable.from_codes(
        table.item,
        fold[table.item] * table.n_annotators + table.annotator,
        table.label,
        n_items=table.n_items,
        n_annotators=n_folds * table.n_annotators,
        n_classes=table.n_classes,
    )
