"""Several runs of one model, such as with different prompts: how far they differ.

Runs of one model that always agree count as one judge, however many there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from annotrace.judges.agreement import agreement_between, agreement_within
from annotrace.judges.estimates import Estimate
from annotrace.judges.shared_errors import measure_dependence
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes


class ModelRuns(NamedTuple):
    """The runs of one model.

    Attributes
    ----------
    runs : tuple
        Names of the judges.
    consistency : Estimate
        Agreement of two runs of the model on one item.
    others : Estimate
        Agreement of its runs with those of other models.
    effective_votes : float
        How many independent votes the runs count for; NaN for a single run, or without gold: labels
        alone do not tell shared errors from the true class.
    """

    model: Any
    runs: tuple[Any, ...]
    consistency: Estimate
    others: Estimate
    effective_votes: float


def runs_by_model(table: LabelTable, known: Codes, models: list[Any]) -> list[ModelRuns]:
    """Compare the runs of each model with each other and with other models.

    Parameters
    ----------
    table : LabelTable
        Labels of the judges alone.
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others.
    models : list of length n_annotators
    """
    return [
        _runs_of(table, known, model, np.array([other == model for other in models]))
        for model in dict.fromkeys(models)
    ]


def _runs_of(table: LabelTable, known: Codes, model: Any, own: Any) -> ModelRuns:
    runs = table.select_annotators(own)
    dependence = measure_dependence(runs, known)
    return ModelRuns(
        model,
        tuple(runs.annotators.tolist()),
        agreement_within(runs).share,
        agreement_between(runs, table.select_annotators(~own)).share,
        float("nan") if dependence is None else dependence.effective_votes,
    )
