"""A greedy plan of labels: each time the one with the highest expected gain per cost.

The report of a planned label is unknown, so its item continues with the expected remaining
uncertainty, and gets another label only if that is still the best use of it.

No array of items x annotators is made. The uncertainty of an item bounds the gain of any label:
items wait in a queue by this bound, and annotators are compared only for items that reach its
front. As capacity and money are spent, the best label of an item can only lose, so an item that was
compared and reaches the front again has the best label there is (lazy greedy).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.allocation.gain import Array, Reports, add_report, expected_certainty
from annotrace.labels import LabelTable
from annotrace.labels.codes import labels_of

# A label with a smaller gain is not planned: it would take a thousand of them to decide one item.
MIN_GAIN = 1e-3
# Gains are compared to this many digits; ties go to annotators with the fewest planned labels.
DIGITS = 12
# Costs such as 0.1 do not add up to the budget exactly.
ROUNDING = 1e-9
# Numbers that one comparison may hold: 8 MB, which fits into a processor's cache.
CELLS = 1 << 20
# The best annotators of an item are kept for when the first of them is no longer available.
CANDIDATES = 32
NOBODY = -1

# A bound on the gain per cost of an item's best label, negated; whether annotators were compared,
# so that it is not only a bound; and the item.
Queue: TypeAlias = list[tuple[float, bool, int]]


class PlannedLabel(NamedTuple):
    """One planned label: codes of item and annotator, and its expected gain."""

    item: int
    annotator: int
    gain: float


@dataclass
class Plan:
    """The labels planned so far, and the state of the items given these.

    Parameters
    ----------
    table : LabelTable
        The existing labels: nobody is asked for the same item twice.
    posterior : ndarray of shape (n_items, n_classes)
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    cost : ndarray of shape (n_annotators,)
        Of one label.
    per_item : int
        Maximum number of new labels per item.

    Attributes
    ----------
    labels : list of PlannedLabel
        In the order in which they were planned.
    load : ndarray of shape (n_annotators,), int64
        The planned labels of each annotator.
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
        """Plan labels until money, capacity or uncertainty is used up.

        Parameters
        ----------
        budget : float
        capacity : ndarray of shape (n_annotators,)
            Maximum number of labels by each annotator in this call.

        Returns
        -------
        float
            What is left of the budget.
        """
        left, money = capacity.copy(), budget * (1 + ROUNDING)
        queue = self._initial_queue()
        while queue and np.any(free := (left > 0) & (self.cost <= money)):
            bound, compared, item = heapq.heappop(queue)
            if not compared:
                self._compare(queue, self._batch(queue, item), free)
                continue
            score, annotator = self._choose(item, free)
            if annotator == NOBODY or score < -bound:
                if score > 0:
                    heapq.heappush(queue, (-score, annotator != NOBODY, item))
                continue
            self._add(item, annotator, score * self.cost[annotator])
            left[annotator] -= 1
            money -= self.cost[annotator]
            if len(self._asked[item]) < self.per_item:
                heapq.heappush(queue, (-self._uncertainty(item) / self.cost.min(), False, item))
        return money

    def _initial_queue(self) -> Queue:
        """Queue items by a bound on the gain per cost of a label."""
        uncertainty = 1 - expected_certainty(self.posterior)
        for item, annotators in self._asked.items():
            more = len(annotators) < self.per_item
            uncertainty[item] = self._uncertainty(item) if more else 0
        items = np.flatnonzero(uncertainty >= MIN_GAIN)
        bounds = -uncertainty[items] / self.cost.min()
        queue = [(b, False, item) for b, item in zip(bounds.tolist(), items.tolist(), strict=True)]
        heapq.heapify(queue)
        return queue

    def _batch(self, queue: Queue, item: int) -> NDArray[np.int64]:
        """Take the next items that are to be compared from the queue, as many as fit."""
        items = [item]
        rows = len(self._state(item))
        while queue and not queue[0][1] and (rows + 1) * self._reports.width <= CELLS:
            items.append(heapq.heappop(queue)[2])
            rows += len(self._state(items[-1]))
        return np.array(items)

    def _compare(self, queue: Queue, items: NDArray[np.int64], free: NDArray[np.bool_]) -> None:
        """Find the best annotators of some items, and queue the items by their gain."""
        gains = np.where(free, self._gains(items), 0)
        scores = np.where(gains >= MIN_GAIN, gains / self.cost, 0)
        last = min(CANDIDATES, scores.shape[1])
        thresholds = np.partition(scores, -last, axis=1)[:, -last]
        for item, row, threshold in zip(items.tolist(), scores, thresholds, strict=True):
            best = self._best(item, row, threshold)
            self._candidates[item] = best, row[best]
            if len(best):
                heapq.heappush(queue, (-float(row[best[0]]), True, item))

    def _best(self, item: int, row: Array, threshold: float) -> NDArray[np.intp]:
        """Return the best annotators of an item, among those with scores above a threshold."""
        able = np.flatnonzero((row >= threshold) & (row > 0))
        # Where many are equal, each item starts with another of them.
        turn = self.load[able] * len(row) + (able - item) % len(row)
        return able[np.lexsort((turn, -row[able]))[:CANDIDATES]]

    def _choose(self, item: int, free: NDArray[np.bool_]) -> tuple[float, int]:
        """Return the best score of an item's free candidates, and the one with the least to do.

        If no candidate is free, `NOBODY` and a bound on the scores of all other annotators.
        """
        candidates, scores = self._candidates[item]
        is_free = free[candidates]
        if not np.any(is_free):
            more = len(candidates) == CANDIDATES
            return float(scores[-1]) if more else 0.0, NOBODY
        best = scores[is_free][0]
        equal = candidates[is_free & (scores == best)]
        return float(best), int(equal[np.argmin(self.load[equal])])

    def _gains(self, items: NDArray[np.int64]) -> Array:
        """Return the gain of a label by each annotator, 0 for those who have labelled the item."""
        joints = [self._state(item) for item in items.tolist()]
        starts = np.cumsum([0, *map(len, joints[:-1])])
        gains: Array = np.add.reduceat(self._reports.gains(np.concatenate(joints)), starts, axis=0)
        row, labels = labels_of(self.table.offsets, items)
        gains[row, self.table.annotator[labels]] = 0
        for place, item in enumerate(items.tolist()):
            gains[place, self._asked.get(item, [])] = 0
        return np.round(gains, DIGITS, out=gains)

    def _state(self, item: int) -> Array:
        """Return the joint array of an item, (n_rows, n_classes)."""
        before: Array = self.posterior[item][None]
        return self._joint.get(item, before)

    def _uncertainty(self, item: int) -> float:
        return 1 - float(expected_certainty(self._joint[item]).sum())

    def _add(self, item: int, annotator: int, gain: float) -> None:
        self._joint[item] = add_report(self._state(item), self.matrices[annotator])
        self._asked.setdefault(item, []).append(annotator)
        self.load[annotator] += 1
        self.labels.append(PlannedLabel(item, annotator, gain))
