"""Annotators: who is shown, how each compares with the crowd, and each one's matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.beta_quantiles import beta_interval
from annotrace.report.overview import is_worrying
from annotrace.report.result import Array, Crowd, Result, ranking

# Where there are more annotators, so many of each kind: most labels, surely best, surely worst.
SHOWN_OF_EACH = 100
# Matrices of more classes than this cannot be read; the commonest mistakes are listed instead.
MOST_CLASSES = 20
_PAIRS = 12
_DIFFERENCES = 4
# A difference from the crowd smaller than this is not worth a word.
_NOTABLE = 0.1


class Cell(NamedTuple):
    """One cell of a matrix: its share, and "more", "less" or "" as against the crowd."""

    share: float
    sign: str = ""


class Mistake(NamedTuple):
    """Items of class `true` called `said`: how often, and how often by the crowd."""

    true: str
    said: str
    share: float
    crowd: float


class Person(NamedTuple):
    """What is said of an annotator.

    Attributes
    ----------
    rank : int
        From 1, by skill.
    name : str
    n_labels : int
    skill, low, high : float or None
    flags : tuple of str
    worrying : bool
        Whether a flag says more than that labels are few.
    against : {"above", "below", "like", ""}
        The crowd, as far as the interval tells.
    matrix : sequence of sequence of Cell
        [true][reported]; empty where there are too many classes.
    differences, mistakes : sequence of Mistake
        Where they surely differ most from the crowd; the commonest mistakes.
    """

    rank: int
    name: str
    n_labels: int
    skill: float | None = None
    low: float | None = None
    high: float | None = None
    flags: tuple[str, ...] = ()
    worrying: bool = False
    against: str = ""
    matrix: Sequence[Sequence[Cell]] = ()
    differences: Sequence[Mistake] = ()
    mistakes: Sequence[Mistake] = ()


class People(NamedTuple):
    """All that is said of annotators.

    Attributes
    ----------
    shown : list of Person
        By skill, or by labels where skills are not known.
    n_left_out : int
    crowd_skill : float or None
        Mean over all labels.
    by_chance : float
    """

    shown: list[Person]
    n_left_out: int
    crowd_skill: float | None
    by_chance: float


def people_of(result: Result) -> People:
    """Work out what is said of annotators."""
    table, crowd = result.table, result.crowd
    order = ranking(table, crowd)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    shown = order[np.isin(order, _chosen(table.labels_per_annotator(), crowd))]
    by_chance = 1 / max(table.n_classes, 1)
    left_out = table.n_annotators - len(shown)
    if crowd is None:
        n_labels = table.labels_per_annotator()
        people = [Person(int(rank[k]), str(table.annotators[k]), int(n_labels[k])) for k in shown]
        return People(people, left_out, None, by_chance)
    pool = crowd_matrix(result)
    skill = float(np.diagonal(pool).mean())
    return People(_known_people(result, crowd, shown, rank, pool), left_out, skill, by_chance)


def crowd_matrix(result: Result) -> Array:
    """Give the matrix of all labels together, [true, reported], shape (n_classes, n_classes).

    A class with less than a label behind it has the row that annotators are thought to have.
    """
    table, crowd = result.table, result.crowd
    if crowd is None:
        counts = np.zeros((table.n_classes, table.n_classes))
        for label in range(table.n_classes):
            counts[:, label] = result.chances[table.item[table.label == label]].sum(axis=0)
        return _shares(counts)
    counts = crowd.counts.sum(axis=0)
    known = counts.sum(axis=1, keepdims=True) >= 1
    return np.where(known, _shares(counts), crowd.matrices.mean(axis=0))


def common_mistakes(matrix: Array, pool: Array, names: list[str], n: int) -> list[Mistake]:
    """List what is most often taken for what, the commonest first."""
    wrong = np.where(np.eye(len(matrix), dtype=bool), 0, matrix)
    return [
        Mistake(names[i], names[j], float(matrix[i, j]), float(pool[i, j]))
        for i, j in _largest(wrong, n)
    ]


def _shares(counts: Array) -> Array:
    shares: Array = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)
    return shares


def _chosen(n_labels: NDArray[np.int64], crowd: Crowd | None) -> NDArray[np.int64]:
    """Choose the annotators to show: all, or those it is most useful to know of."""
    n = SHOWN_OF_EACH
    if len(n_labels) <= 3 * n:
        return np.arange(len(n_labels))
    most = np.argsort(-n_labels, kind="stable")
    if crowd is None:
        return most[: 3 * n]
    best, worst = np.argsort(-crowd.low, kind="stable"), np.argsort(crowd.high, kind="stable")
    return np.unique(np.concatenate([most[:n], best[:n], worst[:n]]))


def _known_people(
    result: Result, crowd: Crowd, shown: NDArray[np.int64], rank: NDArray[np.int64], pool: Array
) -> list[Person]:
    table = result.table
    names = [str(name) for name in table.classes.tolist()]
    n_labels, skill = table.labels_per_annotator(), float(np.diagonal(pool).mean())
    matrices = crowd.matrices[shown]
    low, high = beta_interval(matrices, crowd.variances[shown], 0.9)
    # +1 where somebody surely does a thing more often than the crowd, -1 less often.
    signs = (low > pool).astype(int) - (high < pool)
    signs[np.abs(matrices - pool) < _NOTABLE] = 0
    return [
        Person(
            rank=int(rank[k]),
            name=str(table.annotators[k]),
            n_labels=int(n_labels[k]),
            skill=float(crowd.skill[k]),
            low=float(crowd.low[k]),
            high=float(crowd.high[k]),
            flags=tuple(crowd.flags[k]),
            worrying=is_worrying(crowd.flags[k]),
            against=_against(float(crowd.low[k]), float(crowd.high[k]), skill),
            matrix=_cells(matrices[place], signs[place]),
            differences=_differences(matrices[place], signs[place], pool, names),
            mistakes=common_mistakes(matrices[place], pool, names, _PAIRS)
            if len(names) > MOST_CLASSES
            else [],
        )
        for place, k in enumerate(shown)
    ]


def _against(low: float, high: float, skill: float) -> str:
    return "above" if low > skill else "below" if high < skill else "like"


def _cells(matrix: Array, signs: Array) -> list[list[Cell]]:
    if len(matrix) > MOST_CLASSES:
        return []
    words = {1: "more", -1: "less", 0: ""}
    return [
        [Cell(share, words[sign]) for share, sign in zip(row, row_signs, strict=True)]
        for row, row_signs in zip(matrix.tolist(), signs.tolist(), strict=True)
    ]


def _differences(matrix: Array, signs: Array, pool: Array, names: list[str]) -> list[Mistake]:
    """List where somebody surely does otherwise than the crowd, the largest difference first."""
    apart = np.where(signs != 0, np.abs(matrix - pool), 0)
    return [
        Mistake(names[i], names[j], float(matrix[i, j]), float(pool[i, j]))
        for i, j in _largest(apart, _DIFFERENCES)
    ]


def _largest(values: Array, n: int) -> list[tuple[int, int]]:
    """Give the places of the largest values above 0, the largest first."""
    flat = np.argsort(-values, axis=None, kind="stable")[:n]
    rows, columns = np.unravel_index(flat, values.shape)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(i, j) for i, j in pairs if values[i, j] > 0]
