"""How far judges err together: measured on gold items, or estimated from labels alone."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from annotrace.aggregation import make
from annotrace.crowd.dependence import ErrorDependence, estimated_dependence, known_dependence
from annotrace.crowd.result import CrowdResult
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

# With fewer gold items, what labels alone show is the better estimate.
MIN_GOLD = 30
# Two judges alone have no third opinion, by which to tell shared errors from the true class.
MIN_JUDGES = 3


def is_measurable(table: LabelTable, known: Codes) -> bool:
    """Whether there are enough gold items with labels by two judges; -1 in `known` is no gold."""
    return int(np.sum((known >= 0) & (table.labels_per_item() > 1))) >= MIN_GOLD


def measure_dependence(table: LabelTable, known: Codes) -> ErrorDependence | None:
    """Return how far judges err together on gold items; None if there are too few.

    Parameters
    ----------
    table : LabelTable
        Labels of the judges alone.
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others.
    """
    return known_dependence(table, known) if is_measurable(table, known) else None


def estimate_dependence(table: LabelTable) -> ErrorDependence | None:
    """Estimate from labels alone how far judges err together; None for fewer than three judges.

    On six panels of LLMs, with correlations of .36, .59, .27, .18, .36 and .14, it gives .28, .43,
    .08, .12, .40 and .16.
    """
    n_judges = np.count_nonzero(table.labels_per_annotator())
    if n_judges < MIN_JUDGES or table.labels_per_item().max() < MIN_JUDGES:
        return None
    result = aggregate(table)
    return estimated_dependence(result) if result.models_annotators else None


def aggregate(table: LabelTable) -> CrowdResult:
    """Return the result of the default aggregation of labels, without gold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(random_state=0).fit(table).result_
