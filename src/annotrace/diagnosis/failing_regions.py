"""Where annotators fail, if their errors depend on the item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.beta_interval import beta_interval
from annotrace.crowd.regional import RegionalAnnotators
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.identifiability import Estimate
from annotrace.diagnosis.suspects import label_probabilities

MIN_LABELS = 10
"""Labels on either side of the border of a region that is reported."""


class FailingRegion(NamedTuple):
    """A region of items in which an annotator is correct significantly less often than outside.

    Attributes
    ----------
    annotator : int
    items : ndarray of int, shape (n_inside,)
        The items inside that the annotator has labelled, the deepest first.
    depth : ndarray of shape (n_inside,)
        Probability that the annotator fails on them.
    inside, outside : Estimate
        Share of correct labels with its 90 % interval, by the estimated classes.
    n_outside : int
        Labels outside.
    """

    annotator: int
    items: NDArray[np.int64]
    depth: NDArray[np.float64]
    inside: Estimate
    outside: Estimate
    n_outside: int

    @property
    def difference(self) -> float:
        """How much more often the annotator is correct outside."""
        return float(self.outside.value - self.inside.value)


def failing_regions(result: CrowdResult) -> list[FailingRegion]:
    """List annotators who fail in a region, the largest difference first.

    Only annotators with ten labels inside and outside, whose intervals do not overlap, are listed.

    Parameters
    ----------
    result : CrowdResult
        Empty unless its annotator model depends on the item: see `ItemDependentEM`.
    """
    model = result.annotator_model
    if not isinstance(model, RegionalAnnotators):
        return []
    table = result.table
    annotator, item = (torch.tensor(each).long() for each in (table.annotator, table.item))
    place = model.device
    fails = torch.sigmoid(-model.gate_logits(annotator.to(place), item.to(place)))
    failing = fails.cpu().double().numpy()
    correct = label_probabilities(table, result.posterior)
    order = np.argsort(table.annotator, kind="stable")
    ends = np.cumsum(table.labels_per_annotator())[:-1]
    found = [
        _region(k, table.item[rows], failing[rows], correct[rows])
        for k, rows in enumerate(np.split(order, ends))
    ]
    significant = [region for region in found if region is not None]
    return sorted(significant, key=lambda region: -region.difference)


def _region(
    annotator: int,
    items: NDArray[np.int32],
    failing: NDArray[np.float64],
    correct: NDArray[np.float64],
) -> FailingRegion | None:
    """Return the failing region of one annotator, None if there is none."""
    inside = failing > 0.5
    if min(inside.sum(), (~inside).sum()) < MIN_LABELS:
        return None
    # Which of the two matrices is the worse is not known before.
    if correct[inside].mean() > correct[~inside].mean():
        inside, failing = ~inside, 1 - failing
    accuracy = _share(correct[inside]), _share(correct[~inside])
    if accuracy[0].high >= accuracy[1].low:
        return None
    deepest = np.flatnonzero(inside)[np.argsort(-failing[inside], kind="stable")]
    chosen = items[deepest].astype(np.int64)
    return FailingRegion(annotator, chosen, failing[deepest], *accuracy, int((~inside).sum()))


def _share(correct: NDArray[np.float64]) -> Estimate:
    """Return a mean of probabilities with its 90 % interval, one label added for either side."""
    n = len(correct) + 2
    mean = (correct.sum() + 1) / n
    low, high = beta_interval(np.array([mean]), np.array([mean * (1 - mean) / (n + 1)]), 0.9)
    return Estimate(float(correct.mean()), float(low[0]), float(high[0]))
