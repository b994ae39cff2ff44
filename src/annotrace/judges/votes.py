"""Majority votes of panels on gold items, fast enough to try many panels.

Where k classes tie for the most votes, the vote is correct with probability 1 / k, if the true
class is among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.judges.estimates import Array
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

Votes = NDArray[np.int64]


class GoldVotes(NamedTuple):
    """The labels of gold items, by judge.

    Attributes
    ----------
    items : ndarray of int, shape (n_items,)
        Codes of the gold items that have a label.
    truth : ndarray of shape (n_items,), int32
        Their classes.
    n_classes : int
    cells : list of ndarray of int
        For each judge the cells of an array (n_items, n_classes) that it votes for.
    """

    items: NDArray[np.int64]
    truth: Codes
    n_classes: int
    cells: list[NDArray[np.int64]]

    @classmethod
    def of(cls, table: LabelTable, known: Codes) -> GoldVotes:
        """Return the labels of the gold items of a table; `known` is -1 for the other items."""
        items = np.flatnonzero((known >= 0) & (table.labels_per_item() > 0))
        gold = table.select_items(items)
        cell = gold.item.astype(np.int64) * gold.n_classes + gold.label
        cells = [cell[gold.annotator == judge] for judge in range(gold.n_annotators)]
        return cls(items, known[items], gold.n_classes, cells)

    @property
    def n_items(self) -> int:
        """Number of gold items with labels."""
        return len(self.truth)

    @property
    def n_judges(self) -> int:
        """Number of judges, with or without labels of gold items."""
        return len(self.cells)

    def votes(self, judges: Iterable[int]) -> Votes:
        """Count the votes of some judges, shape (n_items, n_classes)."""
        voted = [np.zeros(0, np.int64), *(self.cells[judge] for judge in judges)]
        counts = np.bincount(np.concatenate(voted), minlength=self.n_items * self.n_classes)
        return counts.reshape(self.n_items, self.n_classes)

    def correct(self, votes: Votes) -> Array:
        """Return the probability that the vote for each item is correct, shape (n_items,)."""
        highest = votes == votes.max(axis=1, keepdims=True)
        correct: Array = highest[np.arange(self.n_items), self.truth] / highest.sum(axis=1)
        return correct

    def judge_correct(self, judge: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the items that a judge has labelled, and whether the labels are correct."""
        item, label = np.divmod(self.cells[judge], self.n_classes)
        return item, label == self.truth[item]

    def folds(self, n_folds: int, random_state: int) -> NDArray[np.int64]:
        """Assign items to folds at random, shape (n_items,)."""
        return np.random.default_rng(random_state).permutation(self.n_items) % n_folds
