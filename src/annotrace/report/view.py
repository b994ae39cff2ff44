"""What a report is written from: the result of a fit, its diagnosis, and the names to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.run_schema import CandidateScore
from annotrace.aggregation.saving import plain_params
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis import Diagnosis, calibrated_posterior
from annotrace.diagnosis.known_truth import scoring_truth
from annotrace.diagnosis.suspects import label_probabilities
from annotrace.estimators import check_fitted
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import as_names
from annotrace.version import versions

if TYPE_CHECKING:
    from annotrace.methods.base import CrowdEstimator
    from annotrace.methods.search import Trial
    from annotrace.training import Epoch

Array = NDArray[Any]
Fitted: TypeAlias = "CrowdEstimator | Aggregation"


@dataclass(frozen=True, eq=False)
class ReportView:
    """A fitted result as a report shows it.

    Attributes
    ----------
    diagnosis : Diagnosis or None
        None if annotators are not modelled. Its texts use the names of `table`.
    table : LabelTable
        The labels with the names to show, and the truth that the fit has not learned from.
    posterior : ndarray of shape (n_items, n_classes)
        Calibrated class probabilities.
    objective : sequence of float
        After each iteration of an aggregation.
    search : sequence of Trial
        The ways to learn that were tried, with their criteria.
    candidates : sequence of CandidateScore
        What gold items have chosen between.
    anonymous : bool
        Whether annotators are shown as numbers.
    """

    result: CrowdResult
    diagnosis: Diagnosis | None
    table: LabelTable
    posterior: Array
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[Epoch] = ()
    objective: Sequence[float] = ()
    candidates: Sequence[CandidateScore] = ()
    search: Sequence[Trial] = ()
    anonymous: bool = False

    @cached_property
    def confidence(self) -> Array:
        """Calibrated probability of each item's estimated class, shape (n_items,)."""
        confidence: Array = self.posterior[np.arange(len(self.posterior)), self.result.estimate]
        return confidence

    @cached_property
    def label_probabilities(self) -> Array:
        """Calibrated probability that each label is correct, shape (n_labels,)."""
        return label_probabilities(self.table, self.posterior)

    @property
    def n_gold(self) -> int:
        """Number of items whose known class the fit has learned from."""
        return int(np.sum(self.result.gold >= 0))


def view_of(model: Fitted, *, anonymous: bool = False) -> ReportView:
    """Return what a report shows of a fitted model.

    Parameters
    ----------
    model : fitted CrowdEstimator or Aggregation
    anonymous : bool
        Show annotators as numbers, in the order of the report: "Annotator 1" has the highest skill.
        Verdict and advice use these names too.
    """
    check_fitted(model)
    result = model.result_
    diagnosis = model.diagnosis_ if result.models_annotators else None
    truth = scoring_truth(result)
    table = result.table.replace(truth=truth if np.any(truth >= 0) else None)
    if anonymous:
        table = _without_names(table, annotator_order(result))
        diagnosis = None if diagnosis is None else replace(diagnosis, table=table)
    return ReportView(
        result=result,
        diagnosis=diagnosis,
        table=table,
        posterior=calibrated_posterior(result),
        method=model.method,
        params=plain_params(model),
        versions=getattr(model, "versions_", None) or versions(),
        history=getattr(model, "history_", ()),
        objective=list(getattr(model, "objective_", ())),
        candidates=getattr(model, "gold_candidates_", ()),
        search=getattr(model, "search_", ()),
        anonymous=anonymous,
    )


def annotator_order(result: CrowdResult) -> NDArray[np.int64]:
    """Order annotators by skill, the highest first, or by labels if skills are not modelled."""
    modelled = result.models_annotators
    by = result.annotators.skill if modelled else result.table.labels_per_annotator()
    return np.argsort(-by, kind="stable")


def _without_names(table: LabelTable, order: NDArray[np.int64]) -> LabelTable:
    # The order of names or of first labels could reveal who is who; that of skills is on the page.
    names = np.empty(table.n_annotators, dtype=object)
    names[order] = [f"Annotator {place}" for place in range(1, len(order) + 1)]
    return table.replace(annotators=as_names(names))
