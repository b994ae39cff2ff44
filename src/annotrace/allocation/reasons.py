"""Why a label is planned: data, and its description in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotrace.allocation.gain import Array
from annotrace.errors import count
from annotrace.labels import LabelTable

# Probability of reporting the correct one of two equally frequent classes.
WELL, FAIRLY_WELL = 0.85, 0.7


class LabelReason(NamedTuple):
    """Why one label is planned.

    Attributes
    ----------
    n_labels, n_votes, voted : int
        Labels of the item, and how many of them report its most reported class.
    classes : tuple of int
        Its two most probable classes; empty if nothing compares annotators.
    probabilities : tuple of float
        Of these classes.
    separation : float
        How often the annotator reports the correct one of the two, if they were equally frequent.
    n_known : int or None
        The labels of an annotator who is asked in order to estimate their skill; None for others.
    """

    n_labels: int
    n_votes: int
    voted: int
    classes: tuple[int, ...]
    probabilities: tuple[float, ...]
    separation: float
    n_known: int | None


def find_reason(
    table: LabelTable, item: int, posterior: Array | None, matrix: Array, n_known: int | None
) -> LabelReason:
    """Return why an annotator is asked for an item.

    Parameters
    ----------
    table : LabelTable
    item : int
    posterior : ndarray of shape (n_classes,) or None
        Of the item; None if nothing compares annotators.
    matrix : ndarray of shape (n_classes, n_classes)
        Of the annotator, [true, reported].
    n_known : int or None
        See `LabelReason`.
    """
    labels = table.label[table.offsets[item] : table.offsets[item + 1]]
    votes = np.bincount(labels, minlength=table.n_classes)
    voted = (len(labels), int(votes.max()), int(votes.argmax()))
    if posterior is None:
        return LabelReason(*voted, (), (), 0.5, n_known)
    likely = np.argsort(-posterior, kind="stable")[:2]
    separation = float(matrix[likely].max(axis=0).sum() / 2)
    classes, probabilities = tuple(likely.tolist()), tuple(posterior[likely].tolist())
    return LabelReason(*voted, classes, probabilities, separation, n_known)


def describe_label_reason(reason: LabelReason, annotator: str, table: LabelTable) -> str:
    """Return a reason in words."""
    n_votes, n_labels = reason.n_votes, reason.n_labels
    votes = f"{n_votes} of {n_labels} labels say {table.classes[reason.voted]}"
    parts = [votes if n_labels else "no labels yet"]
    names = [str(table.classes[k]) for k in reason.classes]
    if names:
        pairs = zip(names, reason.probabilities, strict=True)
        parts[0] += f" (now {', '.join(f'{name} {100 * p:.0f} %' for name, p in pairs)})"
    else:
        parts.append("nothing compares annotators yet")
    if reason.n_known is not None:
        so_far = count(reason.n_known, "label") if reason.n_known else "no labels"
        parts.append(f"{annotator} has {so_far} so far, too few to estimate their skill")
    elif names:
        low = "fairly well" if reason.separation >= FAIRLY_WELL else "a little"
        well = "well" if reason.separation >= WELL else low
        parts.append(f"{annotator} distinguishes {' from '.join(names)} {well}")
    return "; ".join(parts)
