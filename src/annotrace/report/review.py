"""Items and labels to review: the least certain items, and the labels most likely wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.report.item_texts import ShownText, Texts
from annotrace.report.pictures import Pictures
from annotrace.report.view import ReportView

# An item is uncertain if its estimated class is correct with a lower probability.
CERTAIN = 0.8
SHOWN = 100
_CLASSES = 3
_LABELS = 12


class Choice(NamedTuple):
    """A class and its calibrated probability."""

    name: str
    probability: float


class GivenLabel(NamedTuple):
    """A label of an item, and whether it agrees with the estimated class."""

    annotator: str
    label: str
    agrees: bool


class UncertainItem(NamedTuple):
    """An item with an uncertain class.

    Attributes
    ----------
    picture : str
        A data URI, or "".
    texts : list of ShownText
        None, one, or two of a pair.
    choices : list of Choice
        The most probable classes, the estimated one first.
    has_likelier_class : bool
        Whether another class is more probable, since annotators share errors.
    """

    name: str
    picture: str
    texts: list[ShownText]
    choices: list[Choice]
    has_likelier_class: bool
    labels: list[GivenLabel]
    n_more_labels: int


class SuspectLabel(NamedTuple):
    """A label that is probably wrong; `probability` is that it is correct."""

    item: str
    picture: str
    texts: list[ShownText]
    annotator: str
    label: str
    probability: float
    estimate: Choice


def uncertain_items(view: ReportView, pictures: Pictures, texts: Texts) -> list[UncertainItem]:
    """List the least certain items, the worst first."""
    confidence = np.where(view.table.labels_per_item() > 0, view.confidence, np.inf)
    worst = _lowest(confidence, SHOWN)
    worst = worst[confidence[worst] < CERTAIN]
    return [_uncertain_item(view, int(k), pictures, texts) for k in worst]


def suspect_labels(view: ReportView, pictures: Pictures, texts: Texts) -> list[SuspectLabel]:
    """List the labels most likely wrong, the worst first."""
    table, estimate = view.table, view.result.estimate
    probabilities = view.label_probabilities
    return [
        SuspectLabel(
            str(table.items[item]),
            pictures(int(item)),
            texts(int(item)),
            str(table.annotators[table.annotator[row]]),
            str(table.classes[table.label[row]]),
            float(probabilities[row]),
            Choice(str(table.classes[estimate[item]]), float(view.confidence[item])),
        )
        for row in _lowest(probabilities, SHOWN)
        if table.label[row] != estimate[item := table.item[row]]
    ]


def _uncertain_item(view: ReportView, item: int, pictures: Pictures, texts: Texts) -> UncertainItem:
    table, estimate = view.table, int(view.result.estimate[item])
    posterior = view.posterior[item]
    rows = range(int(table.offsets[item]), int(table.offsets[item + 1]))
    likely = np.argsort(-posterior, kind="stable").tolist()
    classes = [estimate, *(k for k in likely if k != estimate)][:_CLASSES]
    return UncertainItem(
        name=str(table.items[item]),
        picture=pictures(item),
        texts=texts(item),
        choices=[Choice(str(table.classes[k]), float(posterior[k])) for k in classes],
        has_likelier_class=bool(posterior.max() > posterior[estimate] + 1e-9),
        labels=[
            GivenLabel(
                str(table.annotators[table.annotator[row]]),
                str(table.classes[table.label[row]]),
                bool(table.label[row] == estimate),
            )
            for row in rows[:_LABELS]
        ],
        n_more_labels=max(len(rows) - _LABELS, 0),
    )


def _lowest(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return the places of the n lowest values, the lowest first, without sorting all."""
    n = min(n, len(values))
    if n == 0:
        return np.empty(0, np.int64)
    lowest = np.flatnonzero(values <= np.partition(values, n - 1)[n - 1])
    return lowest[np.argsort(values[lowest], kind="stable")][:n]
