"""Why a label is asked for, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.labels import LabelTable

# How often someone names the right one of two classes, when shown as many of either.
WELL, FAIRLY_WELL = 0.85, 0.7


def explain(
    table: LabelTable,
    item: int,
    posterior: NDArray[Any] | None,
    matrix: NDArray[Any],
    annotator: str,
    n_labels: int | None,
) -> str:
    """Say what is known of the item, and why this annotator can tell more.

    Parameters
    ----------
    table : LabelTable
    item : int
    posterior : ndarray of shape (n_classes,) or None
        Of the item; None where nothing compares annotators, and nobody knows how well they label.
    matrix : ndarray of shape (n_classes, n_classes)
        Of the annotator, [true, reported].
    annotator : str
    n_labels : int or None
        The labels of an annotator who is asked in order to be known; None of any other.
    """
    if posterior is None:
        newcomer = "" if n_labels is None else f", and {annotator} {_newcomer(n_labels)}"
        return f"{_votes(table, item)}; nothing compares annotators yet{newcomer}"
    first, second = np.argsort(-posterior, kind="stable")[:2]
    names = [str(name) for name in table.classes[[first, second]].tolist()]
    chances = [f"{100 * posterior[code]:.0f} %" for code in (first, second)]
    known = f"{_votes(table, item)} (now {names[0]} {chances[0]}, {names[1]} {chances[1]})"
    if n_labels is not None:
        return f"{known}, and {annotator} {_newcomer(n_labels)}"
    how_well = _how_well(matrix, first, second)
    return f"{known}, and {annotator} tells {names[0]} from {names[1]} {how_well}"


def _votes(table: LabelTable, item: int) -> str:
    labels = table.label[table.offsets[item] : table.offsets[item + 1]]
    if not len(labels):
        return "nobody has labelled it"
    votes = np.bincount(labels, minlength=table.n_classes)
    return f"{votes.max()} of {len(labels)} say {table.classes.tolist()[votes.argmax()]}"


def _newcomer(n_labels: int) -> str:
    so_far = (
        "no labels" if n_labels == 0 else "one label" if n_labels == 1 else f"{n_labels} labels"
    )
    return f"has {so_far} so far, too few to be known by"


def _how_well(matrix: NDArray[Any], first: int, second: int) -> str:
    right = np.maximum(matrix[first], matrix[second]).sum() / 2
    return "well" if right >= WELL else "fairly well" if right >= FAIRLY_WELL else "a little"
