"""Single labels, those most likely wrong first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.table import LabelTable


def label_probabilities(table: LabelTable, posterior: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probability that each label is correct, shape (n_labels,).

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    """
    probabilities = np.empty(table.n_labels)
    for _, labels in table.blocks():
        probabilities[labels] = posterior[table.item[labels], table.label[labels]]
    return probabilities


def rank_suspects(
    table: LabelTable, posterior: NDArray[Any], n: int | None = None
) -> NDArray[np.int64]:
    """Return the rows of the labels most likely wrong, the most suspicious first, shape (n,).

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    n : int, optional
        How many; all labels by default.
    """
    if n is not None and n < 0:
        raise InputError(f"Expected `n` to be 0 or more, but got {n}.")
    order = np.argsort(label_probabilities(table, posterior), kind="stable")
    return order if n is None else order[:n]
