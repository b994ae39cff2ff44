"""Class by class: how common, how often recognised, taken for what; and how far people agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotrace.diagnosis import fleiss_kappa, krippendorff_alpha, pairwise_kappa
from annotrace.diagnosis.agreement import LEAST_SHARED, PairwiseKappa
from annotrace.labels import LabelTable
from annotrace.report.people import (
    MOST_CLASSES,
    Cell,
    Mistake,
    common_mistakes,
    crowd_matrix,
)
from annotrace.report.result import Result

SHOWN = 500
_PAIRS = 20
_TAKEN_FOR = 2
# Pairs of labels of the same item: above that, Cohen's kappa of all pairs would take minutes.
MOST_PAIRS = 20_000_000


class ClassFacts(NamedTuple):
    """What is said of a class.

    Attributes
    ----------
    name : str
    n_items : int
        Of which it is the estimated class.
    n_labels : int
        Given.
    recognised : float
        Of labels on items of this class, how many say so.
    taken_for : list of Mistake
    lead, lead_low, lead_high : float or None
        By how much it is called by its own name more often than any other class is.
    weak : bool
        Whether the labels do not show it well enough.
    """

    name: str
    n_items: int
    n_labels: int
    recognised: float
    taken_for: list[Mistake]
    lead: float | None
    lead_low: float | None
    lead_high: float | None
    weak: bool


class Classes(NamedTuple):
    """All that is said of classes.

    Attributes
    ----------
    names : list of str
    shown : list of ClassFacts
    n_left_out : int
    matrix : list of list of Cell
        Of the crowd, [true][reported]; empty where there are too many classes.
    mistakes : list of Mistake
        The commonest of the crowd.
    """

    names: list[str]
    shown: list[ClassFacts]
    n_left_out: int
    matrix: list[list[Cell]]
    mistakes: list[Mistake]


class Agreement(NamedTuple):
    """A coefficient of agreement: its name, value, and meaning, or why the value is None."""

    name: str
    value: float | None
    meaning: str


def classes_of(result: Result) -> Classes:
    """Work out what is said of classes."""
    table, pool = result.table, crowd_matrix(result)
    names = [str(name) for name in table.classes.tolist()]
    n_items = np.bincount(result.estimate, minlength=len(names))
    n_labels = table.labels_per_class()
    shown = np.arange(len(names))
    if len(shown) > SHOWN:
        shown = np.sort(np.argsort(-n_labels, kind="stable")[:SHOWN])
    facts = [
        ClassFacts(
            names[k],
            int(n_items[k]),
            int(n_labels[k]),
            float(pool[k, k]),
            _taken_for(pool, int(k), names),
            *_lead(result, int(k)),
        )
        for k in shown
    ]
    readable = len(names) <= MOST_CLASSES
    matrix = [[Cell(share) for share in row] for row in pool.tolist()] if readable else []
    mistakes = common_mistakes(pool, pool, names, _PAIRS)
    return Classes(names, facts, len(names) - len(shown), matrix, mistakes)


def agreement_of(table: LabelTable) -> list[Agreement]:
    """Measure how far annotators agree beyond chance; empty where no item has two labels."""
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
            "annotators taken for interchangeable, every item counting the same",
        ),
    ]
    if int((n_labels * (n_labels - 1) // 2).sum()) <= MOST_PAIRS:
        found.append(_cohen(pairwise_kappa(table)))
    return found


def _cohen(pairs: PairwiseKappa) -> Agreement:
    if np.all(pairs.n_shared < LEAST_SHARED):
        return Agreement("Cohen's kappa", None, f"no two annotators share {LEAST_SHARED} items")
    meaning = (
        "unweighted, for classes without order: mean over pairs of annotators who share "
        f"{LEAST_SHARED} items or more, each pair counting by what it shares"
    )
    return _agreement("Cohen's kappa", pairs.mean(), meaning)


def _agreement(name: str, value: float, meaning: str) -> Agreement:
    if not np.isfinite(value):
        return Agreement(name, None, "every label is of one class")
    return Agreement(name, value, meaning)


def _taken_for(pool: np.ndarray, k: int, names: list[str]) -> list[Mistake]:
    others = [j for j in np.argsort(-pool[k], kind="stable").tolist() if j != k][:_TAKEN_FOR]
    share = [float(pool[k, j]) for j in others]
    return [
        Mistake(names[k], names[j], p, p) for j, p in zip(others, share, strict=True) if p >= 0.01
    ]


def _lead(result: Result, k: int) -> tuple[float | None, float | None, float | None, bool]:
    judged = result.judgement
    if judged is None:
        return None, None, None, False
    ends = (float(part[k]) for part in (judged.margin, judged.margin_low, judged.margin_high))
    return (*ends, bool(k in judged.weak_classes))  # type: ignore[return-value]
