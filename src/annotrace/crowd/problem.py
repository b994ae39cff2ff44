"""Labels, gold items and prior counts of one problem, as EM takes them."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from annotrace.crowd.em import clamp_posterior, clamp_to_gold, normalize_joint
from annotrace.crowd.label_index import LabelIndex, best_dtype
from annotrace.errors import InputError
from annotrace.labels.codes import check_truth
from annotrace.labels.table import LabelTable

BLOCK = 1024


class CrowdProblem:
    """What EM over the labels of a table needs, as tensors.

    Parameters
    ----------
    table : LabelTable
    gold : array-like of int, shape (n_items,), optional
        The class of each gold item, -1 elsewhere.
    prior_counts : array-like of shape (n_annotators, n_classes, n_classes), optional
        Counts [annotator, true, reported] of earlier labels of known items.

    Attributes
    ----------
    dtype : torch.dtype
        float64, or float32 if there are many labels.
    n_items, n_labels : int
    """

    def __init__(
        self,
        table: LabelTable,
        gold: ArrayLike | None = None,
        prior_counts: ArrayLike | None = None,
    ) -> None:
        self.table, self.dtype = table, best_dtype(table.n_labels)
        self.n_items, self.n_labels = table.n_items, table.n_labels
        self.shape = (table.n_annotators, table.n_classes, table.n_classes)
        self.gold = _check_gold(gold, table)
        self.prior_counts = self._check_prior_counts(prior_counts)

    @cached_property
    def labels(self) -> LabelIndex:
        """The labels, indexed for the two sums of EM when they are first needed."""
        return LabelIndex.from_table(self.table)

    @cached_property
    def uninformed(self) -> Tensor:
        """Items that have neither a label nor a gold class, shape (n_uninformed,)."""
        uninformed = (self.table.labels_per_item() == 0) & (self.gold < 0)
        return torch.from_numpy(np.flatnonzero(uninformed))

    @property
    def is_comparable(self) -> bool:
        """Whether anything compares annotators: see `is_comparable`."""
        return is_comparable(self.table, self.gold) or self.prior_counts is not None

    def with_gold(self, gold: ArrayLike) -> CrowdProblem:
        """Return the same labels with other gold items."""
        other = copy.copy(self)
        other.gold = _check_gold(gold, self.table)
        vars(other).pop("uninformed", None)
        return other

    def tensor(self, values: ArrayLike) -> Tensor:
        """Return an array as a tensor in the number type of this problem."""
        return torch.as_tensor(np.array(values), dtype=self.dtype)

    def votes(self) -> Tensor:
        """Return the share of each class among the labels of each item, (n_items, n_classes).

        Gold items have their gold class; items without labels are uniform.
        """
        votes = torch.empty(self.table.n_items, self.shape[1], dtype=self.dtype)
        for items, _ in self.table.blocks():
            part = self.tensor(self.table.votes(items))
            total = part.sum(1, keepdim=True)
            part.div_(total.clamp(min=1)).masked_fill_(total == 0, 1 / self.shape[1])
            votes[items] = part
        return self.set_gold(votes)

    def set_gold(self, posterior: Tensor) -> Tensor:
        """Return a posterior (n_items, n_classes) in which gold items are certain."""
        return torch.from_numpy(clamp_posterior(posterior.numpy(), self.gold))

    def counts(self, posterior: Tensor) -> Tensor:
        """Return expected counts [annotator, true, reported], prior counts included."""
        counts = self.label_counts(posterior)
        return counts if self.prior_counts is None else counts.add_(self.prior_counts)

    def agreement(self, posterior: Tensor) -> Tensor:
        """Return how many labels of each annotator are correct, and how many there are.

        Parameters
        ----------
        posterior : Tensor of shape (n_items, n_classes)

        Returns
        -------
        Tensor of float64, shape (2, n_annotators)
            Prior counts included: the sums of the diagonals and of all `counts`.
        """
        labels, n_annotators = self.labels, self.shape[0]
        right = posterior[labels.row, labels.label].double()
        correct = torch.bincount(labels.annotator, right, n_annotators)
        total = torch.bincount(labels.annotator, minlength=n_annotators)
        both = torch.stack([correct, total.double()])
        if self.prior_counts is not None:
            both[0] += self.prior_counts.diagonal(dim1=1, dim2=2).sum(1)
            both[1] += self.prior_counts.sum((1, 2))
        return both

    def check_whole(self, what: str) -> None:
        """Raise an `InputError` if this is only the part of one of several processes."""

    def label_counts(self, state: Tensor) -> Tensor:
        """Count reports by the states of items; see `LabelIndex.counts`."""
        return self.labels.counts(state)

    def fraction(self, items: Tensor) -> float:
        """Return the fraction of items in a mask, BoolTensor of shape (n_items,)."""
        return float(items.float().mean())

    def e_step(self, log_joint: Tensor) -> tuple[Tensor, float]:
        """Return the posterior of each item's state and the log evidence of all labels.

        Parameters
        ----------
        log_joint : Tensor of shape (n_items, n_states)
            log p(state, labels); overwritten. Gold items keep the states of their class.
        """
        clamp_to_gold(log_joint, self.gold, self.shape[1])
        posterior, log_evidence = normalize_joint(log_joint)
        return posterior, float(self.total(log_evidence[:, None]))

    def log_evidence(self, log_joint: Tensor) -> float:
        """Return the log evidence of all labels alone; see `e_step`."""
        clamp_to_gold(log_joint, self.gold, self.shape[1])
        return float(self.total(log_joint.logsumexp(1, keepdim=True)))

    def total(self, values: Tensor) -> Tensor:
        """Sum values (n_items, n) over items with labels or a gold class, in float64, (n,)."""
        total = _sum_rows(values)
        return total - _sum_rows(values[self.uninformed]) if len(self.uninformed) else total

    def log_prior_counts(self, log_matrices: Tensor) -> Tensor:
        """Return the log-likelihood of the prior counts, shape ()."""
        if self.prior_counts is None:
            return torch.zeros((), dtype=torch.float64)
        return (self.prior_counts * log_matrices).sum(dtype=torch.float64)

    def _check_prior_counts(self, prior_counts: ArrayLike | None) -> Tensor | None:
        if prior_counts is None:
            return None
        counts = np.asarray(prior_counts, dtype=np.float64)
        if counts.shape != self.shape:
            raise InputError(
                f"Expected `prior_counts` of shape {self.shape} (annotator, true, reported), "
                f"but got {counts.shape}."
            )
        if not np.all(counts >= 0):
            raise InputError("Expected `prior_counts` to be 0 or more.")
        return self.tensor(counts)


def is_comparable(table: LabelTable, gold: NDArray[np.int32]) -> bool:
    """Whether labels compare annotators: some item has two, or a gold class and one."""
    needed = np.where(gold >= 0, 1, 2)
    return bool(np.any(table.labels_per_item() >= needed))


def _check_gold(gold: ArrayLike | None, table: LabelTable) -> NDArray[np.int32]:
    if gold is None:
        return np.full(table.n_items, -1, np.int32)
    return check_truth(gold, table.n_items, table.n_classes)


def _sum_rows(values: Tensor) -> Tensor:
    """Sum rows in float64 by blocks: summing directly into float64 takes twenty times as long."""
    blocks, rest = values.tensor_split([len(values) // BLOCK * BLOCK])
    short_sums = blocks.view(-1, BLOCK, values.shape[1]).sum(1)
    return short_sums.sum(0, dtype=torch.float64) + rest.sum(0, dtype=torch.float64)
