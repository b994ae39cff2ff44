"""Classes: how frequent, how often recognised, confused with what; and how far annotators agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotrace.diagnosis import fleiss_kappa, krippendorff_alpha, pairwise_kappa
from annotrace.diagnosis.agreement import MIN_SHARED, PairwiseKappa
from annotrace.diagnosis.identifiability import Estimate
from annotrace.labels import LabelTable
from annotrace.report.annotators import (
    MAX_MATRIX_CLASSES,
    Cell,
    ClassError,
    crowd_matrix,
    frequent_errors,
)
from annotrace.report.view import Array, ReportView

SHOWN = 500
_ERRORS = 20
_CONFUSED_WITH = 2


class ClassRow(NamedTuple):
    """What the page says about a class.

    Attributes
    ----------
    n_items : int
        Items with this estimated class.
    n_labels : int
        Labels that report it.
    recognised : float
        Share of the labels of its items that report it.
    margin : Estimate or None
        How much more often its items receive its label than items of any other class do.
    is_weak : bool
        Whether the labels do not identify it well enough.
    """

    name: str
    n_items: int
    n_labels: int
    recognised: float
    confused_with: list[ClassError]
    margin: Estimate | None
    is_weak: bool


class ClassSection(NamedTuple):
    """What the page says about classes.

    Attributes
    ----------
    matrix : list of list of Cell
        Of the crowd, [true][reported]; empty if there are too many classes.
    errors : list of ClassError
        The most frequent of the crowd.
    """

    names: list[str]
    shown: list[ClassRow]
    n_left_out: int
    matrix: list[list[Cell]]
    errors: list[ClassError]


class Agreement(NamedTuple):
    """A coefficient of agreement: name, value, and its meaning, or why the value is None."""

    name: str
    value: float | None
    meaning: str


def class_section(view: ReportView) -> ClassSection:
    """Compute what the page says about classes."""
    pool, n_labels = crowd_matrix(view), view.table.labels_per_class()
    names = [str(name) for name in view.table.classes.tolist()]
    n_items = np.bincount(view.result.estimate, minlength=len(names))
    shown = np.arange(len(names))
    if len(shown) > SHOWN:
        shown = np.sort(np.argsort(-n_labels, kind="stable")[:SHOWN])
    rows = [
        ClassRow(
            names[k],
            int(n_items[k]),
            int(n_labels[k]),
            float(pool[k, k]),
            _confused_with(pool, k, names),
            *_margin(view, k),
        )
        for k in shown.tolist()
    ]
    readable = len(names) <= MAX_MATRIX_CLASSES
    matrix = [[Cell(share) for share in row] for row in pool.tolist()] if readable else []
    errors = frequent_errors(pool, pool, names, _ERRORS)
    return ClassSection(names, rows, len(names) - len(shown), matrix, errors)


def _confused_with(pool: Array, k: int, names: list[str]) -> list[ClassError]:
    errors = np.where(np.arange(len(pool)) == k, 0, pool[k])
    most = np.argsort(-errors, kind="stable")[:_CONFUSED_WITH]
    shares = [(names[j], float(errors[j])) for j in most if errors[j] >= 0.01]
    return [ClassError(names[k], other, share, share) for other, share in shares]


def _margin(view: ReportView, k: int) -> tuple[Estimate | None, bool]:
    if view.diagnosis is None:
        return None, False
    margin = Estimate(*(float(part[k]) for part in view.diagnosis.margins))
    return margin, bool(k in view.diagnosis.weak_classes)


def agreement_of(table: LabelTable) -> list[Agreement]:
    """Measure how far annotators agree beyond chance; empty if no item has two labels."""
    n_labels = table.labels_per_item()
    if n_labels.max(initial=0) < 2:
        return []
    found = [
        _agreement(
            "Krippendorff's alpha",
            krippendorff_alpha(table),
            "any number of annotators, each with any number of labels: the one to quote",
        ),
        _agreement(
            "Fleiss' kappa",
            fleiss_kappa(table),
            "annotators are interchangeable, and every item counts the same",
        ),
    ]
    return [*found, _cohen(pairwise_kappa(table, min_shared=MIN_SHARED))]


def _cohen(pairs: PairwiseKappa) -> Agreement:
    if len(pairs.n_shared) == 0:
        among = f" of {pairs.n_compared:,} drawn at random" if pairs.sampled else ""
        meaning = f"no two annotators{among} share {MIN_SHARED} items"
        return Agreement("Cohen's kappa", None, meaning)
    meaning = (
        "unweighted, for classes without order: mean over pairs of annotators who share "
        f"{MIN_SHARED} items or more, weighted by the items they share"
    )
    if pairs.sampled:
        meaning += f"; estimated from {pairs.n_compared:,} {pairs.sampled} drawn at random"
    return _agreement("Cohen's kappa", pairs.mean(), meaning)


def _agreement(name: str, value: float, meaning: str) -> Agreement:
    if not np.isfinite(value):
        return Agreement(name, None, "every label is of one class")
    return Agreement(name, value, meaning)
