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
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.allocation.gain import Array, Reports, after_report, settled
from annotrace.labels import LabelTable
from annotrace.labels.codes import labels_of

# A label that gains less is not asked for: a thousand of them would settle one item.
WORTHWHILE = 1e-3
# Gains are compared to so many digits; equal ones go to whoever has the fewest labels to give.
DIGITS = 12
# Costs such as 0.1 do not add up to the budget exactly.
ROUNDING = 1e-9
# Numbers that a comparison may hold at a time: 8 MB, which a processor keeps close by.
CELLS = 1 << 20
# Those who can label an item best are kept for when the first of them can be asked no more.
CANDIDATES = 32
NOBODY = -1

# The most that a label of an item could gain for its cost, negated; whether it is no mere bound,
# annotators having been compared; and the item.
Queue: TypeAlias = list[tuple[float, bool, int]]


@dataclass(frozen=True)
class PlannedLabel:
    """One label to ask for: codes of item and annotator, and the gain expected of it."""

    item: int
    annotator: int
    gain: float


@dataclass
class Plan:
    """Labels planned so far, and what is known of the items once they are given.

    Parameters
    ----------
    table : LabelTable
        The labels that were given: nobody is asked for an item twice.
    posterior : ndarray of shape (n_items, n_classes)
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported]; there may be more annotators than in the table.
    cost : ndarray of shape (n_annotators,)
        Of one label.
    per_item : int
        New labels of an item at most.

    Attributes
    ----------
    labels : list of PlannedLabel
        In the order in which they were planned.
    load : ndarray of shape (n_annotators,), int64
        The labels that each has to give.
    """

    table: LabelTable
    posterior: Array
    matrices: Array
    cost: Array
    per_item: int
    labels: list[PlannedLabel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.load = np.zeros(len(self.cost), np.int64)
        self._reports = Reports(self.matrices)
        self._asked: dict[int, list[int]] = {}
        self._joint: dict[int, Array] = {}
        self._candidates: dict[int, tuple[NDArray[np.intp], Array]] = {}

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
        left, money = capacity.copy(), budget * (1 + ROUNDING)
        queue = self._line_up()
        while queue and np.any(can_be_asked := (left > 0) & (self.cost <= money)):
            bound, compared, item = heapq.heappop(queue)
            if not compared:
                self._compare(queue, self._with_neighbours(queue, item), can_be_asked)
                continue
            score, annotator = self._choose(item, can_be_asked)
            if annotator == NOBODY or score < -bound:
                if score > 0:
                    heapq.heappush(queue, (-score, annotator != NOBODY, item))
                continue
            self._ask(item, annotator, score * self.cost[annotator])
            left[annotator] -= 1
            money -= self.cost[annotator]
            if len(self._asked[item]) < self.per_item:
                heapq.heappush(queue, (-self._doubt(item) / self.cost.min(), False, item))
        return money

    def _line_up(self) -> Queue:
        """Line up items by the most that a label could gain for its cost."""
        doubt = 1 - settled(self.posterior)
        for item, annotators in self._asked.items():
            doubt[item] = self._doubt(item) if len(annotators) < self.per_item else 0
        items = np.flatnonzero(doubt >= WORTHWHILE)
        bounds = -doubt[items] / self.cost.min()
        queue = [(b, False, item) for b, item in zip(bounds.tolist(), items.tolist(), strict=True)]
        heapq.heapify(queue)
        return queue

    def _with_neighbours(self, queue: Queue, item: int) -> NDArray[np.int64]:
        """Take from the queue what waits behind an item to be compared, as much as fits."""
        items = [item]
        rows = len(self._known(item))
        while queue and not queue[0][1] and (rows + 1) * self._reports.width <= CELLS:
            items.append(heapq.heappop(queue)[2])
            rows += len(self._known(items[-1]))
        return np.array(items)

    def _compare(
        self, queue: Queue, items: NDArray[np.int64], can_be_asked: NDArray[np.bool_]
    ) -> None:
        """Find who could label each of some items best, and line these up by what that gains."""
        gains = np.where(can_be_asked, self._gains(items), 0)
        scores = np.where(gains >= WORTHWHILE, gains / self.cost, 0)
        last = min(CANDIDATES, scores.shape[1])
        least = np.partition(scores, -last, axis=1)[:, -last]
        for item, row, enough in zip(items.tolist(), scores, least, strict=True):
            best = self._best(item, row, enough)
            self._candidates[item] = best, row[best]
            if len(best):
                heapq.heappush(queue, (-float(row[best[0]]), True, item))

    def _best(self, item: int, row: Array, enough: float) -> NDArray[np.intp]:
        """Give those who could label an item best, by scores of which few are above `enough`."""
        able = np.flatnonzero((row >= enough) & (row > 0))
        # Where many are equal, each item begins with another of them.
        turn = self.load[able] * len(row) + (able - item) % len(row)
        return able[np.lexsort((turn, -row[able]))[:CANDIDATES]]

    def _choose(self, item: int, can_be_asked: NDArray[np.bool_]) -> tuple[float, int]:
        """Give the best score of an item's candidates, and who has it and the least to do.

        Where none is left, nobody, and a bound on what those who are no candidates could score.
        """
        candidates, scores = self._candidates[item]
        free = can_be_asked[candidates]
        if not np.any(free):
            more = len(candidates) == CANDIDATES
            return float(scores[-1]) if more else 0.0, NOBODY
        best = scores[free][0]
        equal = candidates[free & (scores == best)]
        return float(best), int(equal[np.argmin(self.load[equal])])

    def _gains(self, items: NDArray[np.int64]) -> Array:
        """Give what each annotator could tell of each item, nothing where they have labelled it."""
        joints = [self._known(item) for item in items.tolist()]
        starts = np.cumsum([0, *map(len, joints[:-1])])
        gains: Array = np.add.reduceat(self._reports.gains(np.concatenate(joints)), starts, axis=0)
        row, labels = labels_of(self.table.offsets, items)
        gains[row, self.table.annotator[labels]] = 0
        for place, item in enumerate(items.tolist()):
            gains[place, self._asked.get(item, [])] = 0
        return np.round(gains, DIGITS, out=gains)

    def _known(self, item: int) -> Array:
        """Give the joint array of an item, (n_rows, n_classes)."""
        before: Array = self.posterior[item][None]
        return self._joint.get(item, before)

    def _doubt(self, item: int) -> float:
        return 1 - float(settled(self._joint[item]).sum())

    def _ask(self, item: int, annotator: int, gain: float) -> None:
        self._joint[item] = after_report(self._known(item), self.matrices[annotator])
        self._asked.setdefault(item, []).append(annotator)
        self.load[annotator] += 1
        self.labels.append(PlannedLabel(item, annotator, gain))
