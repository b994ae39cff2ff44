"""Single items and labels to look at: those in doubt, and those most likely wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.report.overview import SURE, label_chances
from annotrace.report.pictures import Pictures
from annotrace.report.result import Result

SHOWN = 100
_CLASSES = 3
_LABELS = 12


class Choice(NamedTuple):
    """A class and the chance that it is right."""

    name: str
    chance: float


class Given(NamedTuple):
    """A label: by whom, what, and whether it is what the item is thought to be."""

    annotator: str
    label: str
    agrees: bool


class DoubtfulItem(NamedTuple):
    """An item in doubt.

    Attributes
    ----------
    name : str
    picture : str
        A data URI, or "".
    choices : list of Choice
        The likeliest classes, the estimated one first.
    outdone : bool
        Whether another is likelier, counting mistakes that people make together.
    labels : list of Given
    n_more_labels : int
    """

    name: str
    picture: str
    choices: list[Choice]
    outdone: bool
    labels: list[Given]
    n_more_labels: int


class SuspectLabel(NamedTuple):
    """A label that is probably wrong: `right` is the chance that it is not."""

    item: str
    picture: str
    annotator: str
    label: str
    right: float
    estimate: Choice


def doubtful_items(result: Result, pictures: Pictures) -> list[DoubtfulItem]:
    """List the items that are least sure, the worst first."""
    confidence = np.where(result.table.labels_per_item() > 0, result.confidence, np.inf)
    worst = _lowest(confidence, SHOWN)
    return [_doubtful(result, int(k), pictures) for k in worst if confidence[k] < SURE]


def suspect_labels(result: Result, pictures: Pictures) -> list[SuspectLabel]:
    """List the labels that are most likely wrong, the worst first."""
    table, chances = result.table, label_chances(result)
    estimate, confidence = result.estimate, result.confidence
    suspects = []
    for row in _lowest(chances, SHOWN):
        item = table.item[row]
        if table.label[row] == estimate[item]:
            continue
        suspects.append(
            SuspectLabel(
                str(table.items[item]),
                pictures(int(item)),
                str(table.annotators[table.annotator[row]]),
                str(table.classes[table.label[row]]),
                float(chances[row]),
                Choice(str(table.classes[estimate[item]]), float(confidence[item])),
            )
        )
    return suspects


def _doubtful(result: Result, item: int, pictures: Pictures) -> DoubtfulItem:
    table, estimate = result.table, int(result.estimate[item])
    rows = range(int(table.offsets[item]), int(table.offsets[item + 1]))
    likeliest = np.argsort(-result.chances[item], kind="stable").tolist()
    classes = [estimate, *(k for k in likeliest if k != estimate)][:_CLASSES]
    return DoubtfulItem(
        name=str(table.items[item]),
        picture=pictures(item),
        choices=[Choice(str(table.classes[k]), float(result.chances[item, k])) for k in classes],
        outdone=bool(result.chances[item].max() > result.chances[item, estimate] + 1e-9),
        labels=[
            Given(
                str(table.annotators[table.annotator[row]]),
                str(table.classes[table.label[row]]),
                bool(table.label[row] == estimate),
            )
            for row in rows[:_LABELS]
        ],
        n_more_labels=max(len(rows) - _LABELS, 0),
    )


def _lowest(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Give the places of the lowest values, the lowest first; a million are not sorted for that."""
    n = min(n, len(values))
    if n == 0:
        return np.empty(0, np.int64)
    lowest = np.flatnonzero(values <= np.partition(values, n - 1)[n - 1])
    return lowest[np.argsort(values[lowest], kind="stable")][:n]
