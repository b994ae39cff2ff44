"""Where annotators fail: items inside their regions, and how often they are correct there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotrace.diagnosis import failing_regions
from annotrace.diagnosis.failing_regions import FailingRegion
from annotrace.diagnosis.identifiability import Estimate
from annotrace.report.item_texts import ShownText, Texts
from annotrace.report.pictures import Pictures
from annotrace.report.review import Choice
from annotrace.report.view import ReportView

SHOWN = 30
"""Annotators; those whose accuracy differs most."""

_EXAMPLES = 6
_CLASSES = 3


class Example(NamedTuple):
    """An item inside a region: the label that was given, and the estimated class."""

    name: str
    picture: str
    texts: list[ShownText]
    label: str
    estimate: str


class RegionRow(NamedTuple):
    """What the page says about the region of an annotator.

    Attributes
    ----------
    inside, outside : Estimate
        Share of correct labels.
    n_inside, n_outside : int
        Labels.
    classes : list of Choice
        The most frequent classes inside, with their shares.
    examples : list of Example
        Items deepest inside.
    """

    annotator: str
    inside: Estimate
    outside: Estimate
    n_inside: int
    n_outside: int
    classes: list[Choice]
    examples: list[Example]


class RegionSection(NamedTuple):
    """What the page says about regions; `n_left_out` counts annotators."""

    shown: list[RegionRow]
    n_left_out: int


def region_section(view: ReportView, pictures: Pictures, texts: Texts) -> RegionSection:
    """Describe the annotators who fail in a region, the largest difference first."""
    found = failing_regions(view.result)
    rows = [_row(view, region, pictures, texts) for region in found[:SHOWN]]
    return RegionSection(rows, max(len(found) - SHOWN, 0))


def _row(view: ReportView, region: FailingRegion, pictures: Pictures, texts: Texts) -> RegionRow:
    table, estimate = view.table, view.result.estimate
    share = np.bincount(estimate[region.items], minlength=table.n_classes) / len(region.items)
    frequent = np.argsort(-share, kind="stable")[:_CLASSES]
    return RegionRow(
        annotator=str(table.annotators[region.annotator]),
        inside=region.inside,
        outside=region.outside,
        n_inside=len(region.items),
        n_outside=region.n_outside,
        classes=[Choice(str(table.classes[k]), float(share[k])) for k in frequent if share[k]],
        examples=[
            _example(view, int(item), region.annotator, pictures, texts)
            for item in region.items[:_EXAMPLES]
        ],
    )


def _example(
    view: ReportView, item: int, annotator: int, pictures: Pictures, texts: Texts
) -> Example:
    table = view.table
    rows = np.arange(table.offsets[item], table.offsets[item + 1])
    label = table.label[rows[table.annotator[rows] == annotator][0]]
    estimate = str(table.classes[view.result.estimate[item]])
    given = str(table.classes[label])
    return Example(str(table.items[item]), pictures(item), texts(item), given, estimate)
