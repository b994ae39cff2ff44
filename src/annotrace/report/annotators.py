"""Annotators: who is shown, how each compares with the crowd, and each one's matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.em import expected_counts
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis import Diagnosis, describe_flags
from annotrace.diagnosis.identifiability import Estimate
from annotrace.report.view import Array, ReportView, annotator_order

# If there are more annotators, this many of each kind: most labels, best, worst.
SHOWN_OF_EACH = 100
# Matrices of more classes are unreadable; the most frequent errors are listed instead.
MAX_MATRIX_CLASSES = 20
_ERRORS = 12
_DIFFERENCES = 4
# A smaller difference from the crowd is not mentioned.
_NOTABLE = 0.1


class Cell(NamedTuple):
    """One cell of a matrix: its share, and "more", "less" or "" compared with the crowd."""

    share: float
    sign: str = ""


class ClassError(NamedTuple):
    """Items of class `true` labelled `reported`: how often, and how often by the crowd."""

    true: str
    reported: str
    share: float
    crowd: float


class Remark(NamedTuple):
    """Flags of an annotator in words, and whether they need attention."""

    text: str
    needs_attention: bool


class AnnotatorRow(NamedTuple):
    """What the page says about an annotator.

    Attributes
    ----------
    rank : int
        From 1, by skill.
    skill, low, high : float or None
        None if annotators are not modelled; all that follows is then empty.
    accuracy : Estimate or None
        Share of the annotator's labels that are correct.
    against : {"above", "below", "like", ""}
        Compared with the crowd, if the interval says so.
    matrix : sequence of sequence of Cell
        [true][reported]; empty if there are too many classes.
    differences, errors : sequence of ClassError
        The largest significant differences from the crowd; the most frequent errors.
    """

    rank: int
    name: str
    n_labels: int
    skill: float | None = None
    low: float | None = None
    high: float | None = None
    accuracy: Estimate | None = None
    remarks: Sequence[Remark] = ()
    against: str = ""
    matrix: Sequence[Sequence[Cell]] = ()
    differences: Sequence[ClassError] = ()
    errors: Sequence[ClassError] = ()

    @property
    def needs_attention(self) -> bool:
        """Whether a remark says more than that there are few labels."""
        return any(remark.needs_attention for remark in self.remarks)


class AnnotatorSection(NamedTuple):
    """What the page says about annotators.

    Attributes
    ----------
    shown : list of AnnotatorRow
        By skill, or by labels if annotators are not modelled.
    crowd_skill : float or None
        The mean diagonal of the crowd's matrix.
    chance : float
        The skill of guesses.
    """

    shown: list[AnnotatorRow]
    n_left_out: int
    crowd_skill: float | None
    chance: float


def annotator_section(view: ReportView) -> AnnotatorSection:
    """Compute what the page says about annotators."""
    table, order = view.table, annotator_order(view.result)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    shown = order[np.isin(order, _choose(view.result))]
    n_labels = table.labels_per_annotator()
    rows = [AnnotatorRow(int(rank[k]), str(table.annotators[k]), int(n_labels[k])) for k in shown]
    skill = None
    if view.diagnosis is not None:
        pool = crowd_matrix(view)
        skill = float(np.diagonal(pool).mean())
        rows = _with_skills(rows, view, view.diagnosis, shown, pool)
    chance = 1 / max(table.n_classes, 1)
    return AnnotatorSection(rows, table.n_annotators - len(shown), skill, chance)


def crowd_matrix(view: ReportView) -> Array:
    """Return the confusion matrix of all labels together, shape (n_classes, n_classes).

    A class with less than one label has the mean row of the annotators.
    """
    if view.diagnosis is None:
        return _normalize(expected_counts(view.posterior, view.table).sum(axis=0))
    annotators = view.result.annotators
    counts = annotators.counts.sum(axis=0)
    known = counts.sum(axis=1, keepdims=True) >= 1
    return np.where(known, _normalize(counts), annotators.mean.mean(axis=0))


def frequent_errors(matrix: Array, pool: Array, names: list[str], n: int) -> list[ClassError]:
    """List the most frequent errors of a matrix (n_classes, n_classes), beside the pool's."""
    wrong = np.where(np.eye(len(matrix), dtype=bool), 0, matrix)
    return _largest_cells(wrong, n, matrix, pool, names)


def _normalize(counts: Array) -> Array:
    shares: Array = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)
    return shares


def _choose(result: CrowdResult) -> NDArray[np.int64]:
    """Choose the annotators to show: all, or those with most labels, the best and the worst."""
    n, n_labels = SHOWN_OF_EACH, result.table.labels_per_annotator()
    if len(n_labels) <= 3 * n:
        return np.arange(len(n_labels))
    most = np.argsort(-n_labels, kind="stable")
    if not result.models_annotators:
        return most[: 3 * n]
    low, high = result.annotators.skill_interval()
    best, worst = np.argsort(-low, kind="stable"), np.argsort(high, kind="stable")
    return np.unique(np.concatenate([most[:n], best[:n], worst[:n]]))


def _with_skills(
    rows: list[AnnotatorRow],
    view: ReportView,
    diagnosis: Diagnosis,
    shown: NDArray[np.int64],
    pool: Array,
) -> list[AnnotatorRow]:
    """Add what is known if annotators are modelled."""
    annotators = view.result.annotators
    names = [str(name) for name in view.table.classes.tolist()]
    crowd = float(np.diagonal(pool).mean())
    skill, (low, high) = annotators.skill, annotators.skill_interval()
    accuracy = (annotators.accuracy, *annotators.accuracy_interval())
    matrices, cells = annotators.mean[shown], annotators.cell_interval(annotators=shown)
    # +1 where an annotator significantly reports a class more often than the crowd, -1 less often.
    signs = (cells[0] > pool).astype(int) - (cells[1] < pool)
    signs[np.abs(matrices - pool) < _NOTABLE] = 0
    apart = np.where(signs != 0, np.abs(matrices - pool), 0)
    readable = len(names) <= MAX_MATRIX_CLASSES
    return [
        row._replace(
            skill=float(skill[k]),
            low=float(low[k]),
            high=float(high[k]),
            accuracy=Estimate(*(float(part[k]) for part in accuracy)),
            remarks=_remarks(diagnosis, k),
            against="above" if low[k] > crowd else "below" if high[k] < crowd else "like",
            matrix=_matrix_cells(matrix, sign) if readable else [],
            differences=_largest_cells(distance, _DIFFERENCES, matrix, pool, names),
            errors=[] if readable else frequent_errors(matrix, pool, names, _ERRORS),
        )
        for row, k, matrix, sign, distance in zip(rows, shown, matrices, signs, apart, strict=True)
    ]


def _remarks(diagnosis: Diagnosis, annotator: int) -> list[Remark]:
    """Describe the flags that need attention, then the others."""
    remarks = []
    for attention in (True, False):
        flags = [f for f in diagnosis.flags[annotator] if f.needs_attention == attention]
        if flags:
            remarks.append(Remark(describe_flags(flags, diagnosis.table), attention))
    return remarks


def _matrix_cells(matrix: Array, signs: Array) -> list[list[Cell]]:
    words = {1: "more", -1: "less", 0: ""}
    return [
        [Cell(share, words[sign]) for share, sign in zip(row, row_signs, strict=True)]
        for row, row_signs in zip(matrix.tolist(), signs.tolist(), strict=True)
    ]


def _largest_cells(
    values: Array, n: int, matrix: Array, pool: Array, names: list[str]
) -> list[ClassError]:
    """List the n cells of a matrix with the largest values above 0, the largest first."""
    flat = np.argsort(-values, axis=None, kind="stable")[:n]
    return [
        ClassError(names[i], names[j], float(matrix[i, j]), float(pool[i, j]))
        for i, j in zip(*np.unravel_index(flat, values.shape), strict=True)
        if values[i, j] > 0
    ]
