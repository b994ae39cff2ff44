"""What an aggregation learns from: labels sorted both ways, gold items and past counts.

Both steps of EM are sums over bags of labels. Sorted by item, the E-step adds up rows of log
probabilities; sorted by (annotator, label), the M-step adds up rows of posteriors. Either is one
`embedding_bag`, and nothing of size items x annotators is made.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import embedding_bag

from annotrace.errors import InputError
from annotrace.labels.codes import check_truth
from annotrace.labels.table import LabelTable

# embedding_bag has a fast path in float32 only: 5 million labels take 0.05 s, and 0.8 s in float64,
# where scipy.sparse takes half of that. Up to this number of labels exactness is worth more.
EXACT_UP_TO = 100_000
BLOCK = 1024


class Evidence:
    """Labels, gold items and past counts of one problem, as tensors.

    A *column* is one answer of one annotator: number ``annotator * n_classes + label``.

    Parameters
    ----------
    table : LabelTable
    gold : array-like of int, shape (n_items,), optional
        The known class of each item, -1 where it is not known.
    past : array-like of shape (n_annotators, n_classes, n_classes), optional
        Counts [annotator, true, reported] from work of which the truth is known.

    Attributes
    ----------
    past : Tensor of shape (n_annotators, n_classes, n_classes) or None
        The same counts in the layout of `count`: [annotator, reported, true].
    """

    def __init__(
        self, table: LabelTable, gold: ArrayLike | None = None, past: ArrayLike | None = None
    ) -> None:
        if table.n_labels == 0:
            raise InputError("Expected a table with labels to learn from, but it has none.")
        self.table = table
        self.dtype = torch.float64 if table.n_labels <= EXACT_UP_TO else torch.float32
        self.shape = (table.n_annotators, table.n_classes, table.n_classes)
        self.gold = _check_gold(gold, table)
        self.past = None if past is None else _check_past(past, self.shape).to(self.dtype)
        column = table.annotator * np.int32(table.n_classes) + table.label
        self._column = torch.from_numpy(column)
        self._item_offsets = torch.from_numpy(table.offsets.astype(np.int32))

    @cached_property
    def _by_column(self) -> tuple[Tensor, Tensor]:
        """Items sorted by column, and where each column begins (a counting sort, by scipy)."""
        table, width = self.table, self.shape[0] * self.shape[1]
        ones = np.ones(table.n_labels, np.int8)
        by_item = (ones, self._column.numpy(), self._item_offsets.numpy())
        by_column = csr_matrix(by_item, shape=(table.n_items, width)).tocsc()
        return torch.from_numpy(by_column.indices), torch.from_numpy(by_column.indptr)

    @cached_property
    def unknown(self) -> Tensor:
        """Items that have neither a label nor a known class, shape (n_unknown,)."""
        unknown = (self.table.labels_per_item() == 0) & (self.gold < 0)
        return torch.from_numpy(np.flatnonzero(unknown))

    @property
    def compares(self) -> bool:
        """Whether anything compares annotators: two labels of an item, one of gold, or a past."""
        needed = np.where(self.gold >= 0, 1, 2)
        return self.past is not None or bool(np.any(self.table.labels_per_item() >= needed))

    def total(self, values: Tensor) -> Tensor:
        """Add up values of items, in float64, over those of which something is known.

        Parameters
        ----------
        values : Tensor of shape (n_items, n)

        Returns
        -------
        Tensor of shape (n,), float64
        """
        total = _sum_rows(values)
        return total - _sum_rows(values[self.unknown]) if len(self.unknown) else total

    def tensor(self, values: ArrayLike) -> Tensor:
        """Give an array in the number type of this problem."""
        return torch.as_tensor(np.array(values), dtype=self.dtype)

    def votes(self) -> Tensor:
        """Give the share of each class among the labels of an item, or its gold class.

        Returns
        -------
        Tensor of shape (n_items, n_classes)
            Rows of items that have neither are uniform.
        """
        votes = self.tensor(self.table.votes())
        total = votes.sum(1, keepdim=True)
        votes.div_(total.clamp(min=1)).masked_fill_(total == 0, 1 / self.shape[1])
        return self.set_gold(votes)

    def set_gold(self, posterior: Tensor) -> Tensor:
        """Make the rows of gold items certain, in place; shape (n_items, n_classes)."""
        items = np.flatnonzero(self.gold >= 0)
        if len(items):
            posterior[items] = 0
            posterior[items, self.gold[items].astype(np.int64)] = 1
        return posterior

    def count(self, posterior: Tensor) -> Tensor:
        """Count who reported what where the truth is each class (the sum of the M-step).

        Parameters
        ----------
        posterior : Tensor of shape (n_items, n_states)

        Returns
        -------
        Tensor of shape (n_annotators, n_classes, n_states)
            Indexed [annotator, reported, true], past counts not included.
        """
        items, offsets = self._by_column
        summed = _sum_bags(items, offsets, posterior)
        return summed.view(*self.shape[:2], posterior.shape[1])

    def add_up(self, columns: Tensor) -> Tensor:
        """Add up the rows of an item's labels (the sum of the E-step).

        Parameters
        ----------
        columns : Tensor of shape (n_annotators, n_classes, n_states)
            Indexed [annotator, reported, true].

        Returns
        -------
        Tensor of shape (n_items, n_states)
        """
        rows = columns.reshape(-1, columns.shape[2])
        return _sum_bags(self._column, self._item_offsets, rows)

    def infer(self, log_columns: Tensor, log_prior: Tensor) -> tuple[Tensor, float]:
        """Give the posterior of each item's state, and the log evidence of all labels (E-step).

        Parameters
        ----------
        log_columns : Tensor of shape (n_annotators, n_classes, n_states)
            Log probability of each report in each state.
        log_prior : Tensor of shape (n_states,)
            Where there are more states than classes, state s stands for class s % n_classes.

        Returns
        -------
        posterior : Tensor of shape (n_items, n_states)
        log_evidence : float
            Over items that have a label or a known class.
        """
        return self.normalise(self.add_up(log_columns).add_(log_prior))

    def normalise(self, scores: Tensor) -> tuple[Tensor, float]:
        """Turn log joint probabilities into the posterior, in place, and the log evidence.

        Parameters
        ----------
        scores : Tensor of shape (n_items, n_states)
        """
        self._rule_out(scores)
        # By hand and in place: torch.softmax over a few columns takes three times as long, and a
        # product with ones adds up short rows in half the time of a sum.
        highest = scores.amax(1, keepdim=True)
        posterior = scores.sub_(highest).exp_()
        total = posterior @ posterior.new_ones(posterior.shape[1], 1)
        posterior.div_(total)
        return posterior, float(self.total(total.log_().add_(highest)))

    def _rule_out(self, scores: Tensor) -> None:
        """Leave gold items only the states of their class, in place."""
        items = np.flatnonzero(self.gold >= 0)
        if len(items):
            other = np.arange(scores.shape[1]) % self.shape[1] != self.gold[items, None]
            scores[items] = scores[items].masked_fill(torch.from_numpy(other), -torch.inf)


def _sum_bags(index: Tensor, offsets: Tensor, rows: Tensor) -> Tensor:
    """Add up the rows that each bag names; bag k is ``index[offsets[k] : offsets[k + 1]]``."""
    if rows.dtype == torch.float32:
        return embedding_bag(index, rows, offsets, mode="sum", include_last_offset=True)
    ones = np.ones(len(index))
    shape = (len(offsets) - 1, len(rows))
    bags = csr_matrix((ones, index.numpy(), offsets.numpy()), shape=shape)
    return torch.from_numpy(bags @ rows.numpy())


def _sum_rows(values: Tensor) -> Tensor:
    """Add up rows in float64, by blocks: a sum straight into float64 takes twenty times as long."""
    blocks, rest = values.tensor_split([len(values) // BLOCK * BLOCK])
    short_sums = blocks.view(-1, BLOCK, values.shape[1]).sum(1)
    return short_sums.sum(0, dtype=torch.float64) + rest.sum(0, dtype=torch.float64)


def _check_gold(gold: ArrayLike | None, table: LabelTable) -> NDArray[np.int32]:
    if gold is None:
        return np.full(table.n_items, -1, np.int32)
    return check_truth(gold, table.n_items, table.n_classes)


def _check_past(past: ArrayLike, shape: tuple[int, int, int]) -> Tensor:
    counts = np.asarray(past, dtype=np.float64)
    if counts.shape != shape:
        raise InputError(
            f"Expected `confusion_prior` of shape {shape} (annotator, true, reported), "
            f"but got {counts.shape}."
        )
    if not np.all(counts >= 0):
        raise InputError("Expected `confusion_prior` to hold counts of at least 0.")
    return torch.from_numpy(np.ascontiguousarray(counts.transpose(0, 2, 1)))
