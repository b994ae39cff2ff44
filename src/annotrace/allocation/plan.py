"""Labels to ask for, planned one after the other: always the one that gains most for its cost.

What a planned label will say is not known, so an item with one goes on with the doubt that is
expected to be left, and gets another only where that is still the best use of it.

No array of items x annotators is made. The doubt of an item is more than any label can gain: items
wait in a queue by their doubt, and annotators are compared only for those that come to its front.
The best label of an item can only lose, as capacity and money are spent, so that an item which was
compared and comes to the front again is the best there is (lazy greedy).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from annotrace.allocation.doubt import (
    Array,
    Doubt,
    after_report,
    condense,
    plausible,
)
from annotrace.labels import LabelTable

# A label that gains less is not asked for: a thousand of them would settle one item.
WORTHWHILE = 1e-3
# Gains that differ by less are equal, and the label goes to whoever has the fewest.
TIE = 1e-9
# Costs such as 0.1 do not add up to the budget exactly.
ROUNDING = 1e-9
NOBODY = -1


@dataclass(frozen=True)
class PlannedLabel:
    """One label to ask for: codes of item and annotator, and the gain expected of it."""

    item: int
    annotator: int
    gain: float


@dataclass
class Plan:
    """Labels planned so far, and what is left to plan with.

    Parameters
    ----------
    table : LabelTable
        The labels that were given: nobody is asked for an item twice.
    posterior : ndarray of shape (n_items, n_classes)
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported]; there may be more annotators than in the table.
    cost : ndarray of shape (n_annotators,)
        Of one label.
    doubt : callable
        One of `annotrace.allocation.doubt.CRITERIA`.
    per_item : int
        New labels of an item at most.

    Attributes
    ----------
    labels : list of PlannedLabel
        In the order in which they were planned.
    """

    table: LabelTable
    posterior: Array
    matrices: Array
    cost: Array
    doubt: Doubt
    per_item: int
    labels: list[PlannedLabel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.load = np.zeros(len(self.cost), np.int64)
        self._asked: dict[int, list[int]] = {}
        self._joint: dict[int, Array] = {}

    def spend(self, budget: float, capacity: NDArray[np.int64]) -> float:
        """Plan labels until money, capacity or doubt is used up.

        Parameters
        ----------
        budget : float
        capacity : ndarray of shape (n_annotators,)
            Labels that each can give at most in this call.

        Returns
        -------
        float
            What is left of the budget.
        """
        left, budget = capacity.copy(), budget * (1 + ROUNDING)
        queue = self._queue(left)
        while queue:
            score, item, annotator = heapq.heappop(queue)
            if annotator == NOBODY or left[annotator] < 1 or self.cost[annotator] > budget:
                open_to = np.flatnonzero((left > 0) & (self.cost <= budget))
                self._compare(queue, item, open_to)
                continue
            self._ask(item, annotator, -score * self.cost[annotator])
            left[annotator] -= 1
            budget -= self.cost[annotator]
            if len(self._asked[item]) < self.per_item:
                bound = self.doubt(self._joint[item]) / self.cost.min()
                heapq.heappush(queue, (-float(bound), item, NOBODY))
        return budget

    def _queue(self, capacity: NDArray[np.int64]) -> list[tuple[float, int, int]]:
        """Line up items by the most that a label could gain for its cost."""
        if not np.any(capacity > 0):
            return []
        doubt = self.doubt(self.posterior[:, None, :])
        for item, joint in self._joint.items():
            doubt[item] = self.doubt(joint) if len(self._asked[item]) < self.per_item else 0
        cheapest = self.cost[capacity > 0].min()
        worthwhile = np.flatnonzero(doubt >= WORTHWHILE)
        bounds = (-doubt[worthwhile] / cheapest).tolist()
        queue = [
            (bound, item, NOBODY) for bound, item in zip(bounds, worthwhile.tolist(), strict=True)
        ]
        heapq.heapify(queue)
        return queue

    def _compare(
        self, queue: list[tuple[float, int, int]], item: int, open_to: NDArray[np.intp]
    ) -> None:
        """Find who should label an item, and line it up again by what that gains."""
        open_to = np.setdiff1d(open_to, self._have_labelled(item), assume_unique=True)
        if not len(open_to):
            return
        gains = self._gains(item, open_to)
        scores = np.where(gains >= WORTHWHILE, gains / self.cost[open_to], 0)
        best = scores.max()
        if best > 0:
            equal = np.flatnonzero(scores >= best * (1 - TIE))
            chosen = equal[np.argmin(self.load[open_to[equal]])]
            heapq.heappush(queue, (-float(scores[chosen]), item, int(open_to[chosen])))

    def _have_labelled(self, item: int) -> NDArray[np.int64]:
        given = self.table.annotator[self.table.offsets[item] : self.table.offsets[item + 1]]
        planned = np.array(self._asked.get(item, []), np.int64)
        return np.union1d(given, planned)

    def _gains(self, item: int, annotators: NDArray[np.intp]) -> Array:
        joint, classes = self._known(item)
        after = after_report(joint, self.matrices[np.ix_(annotators, classes)])
        gains: Array = self.doubt(joint) - self.doubt(after)
        return gains

    def _known(self, item: int) -> tuple[Array, NDArray[np.intp]]:
        classes = plausible(self.posterior[item])
        return self._joint.get(item, self.posterior[item, classes][None]), classes

    def _ask(self, item: int, annotator: int, gain: float) -> None:
        joint, classes = self._known(item)
        after = after_report(joint, self.matrices[np.ix_([annotator], classes)])
        self._joint[item] = condense(after[0])
        self._asked.setdefault(item, []).append(annotator)
        self.load[annotator] += 1
        self.labels.append(PlannedLabel(item, annotator, gain))
