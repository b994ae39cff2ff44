"""How far judges err together: against gold if there is some, else by what their labels show."""

from __future__ import annotations

import numpy as np

from annotrace.crowd.dependence import ErrorDependence, known_dependence
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

# With fewer gold items the correlation of errors is too uncertain to be of use.
MIN_GOLD = 30


def measure_dependence(table: LabelTable, known: Codes) -> ErrorDependence | None:
    """Return how far the annotators of a table err together; None if it cannot be known.

    Parameters
    ----------
    table : LabelTable
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others.
    """
    if table.n_annotators < 2 or np.count_nonzero(table.labels_per_item() > 1) == 0:
        return None
    if np.count_nonzero(known >= 0) >= MIN_GOLD:
        return known_dependence(table, known)
    return None
