"""What a report is written from: a fitted model or a run, in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.registry import name_of
from annotrace.aggregation.runs import AggregatedRun
from annotrace.diagnosis import Diagnosis
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.diagnosis.flags import flag_annotators
from annotrace.diagnosis.reasons import find_reasons
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import Names, as_names
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.runs import plain_settings
from annotrace.training import Epoch
from annotrace.version import versions

Array = NDArray[Any]


# A fitted classifier or aggregation, or a run that was read back.
Fitted = Diagnosed


@dataclass(frozen=True, eq=False)
class Crowd:
    """What was learned of annotators.

    Attributes
    ----------
    skill, low, high : ndarray of shape (n_annotators,)
        With its 90 % interval.
    matrices, variances : ndarray of shape (n_annotators, n_classes, n_classes)
        Of the cells [annotator, true, reported].
    counts : ndarray of shape (n_annotators, n_classes, n_classes)
        Labels behind each cell.
    flags : sequence of length n_annotators
        What there is to say of each, in words.
    """

    skill: Array
    low: Array
    high: Array
    matrices: Array
    variances: Array
    counts: Array
    flags: Sequence[tuple[str, ...]]


class Judgement(NamedTuple):
    """Whether labels show the truth: see `annotrace.diagnosis.Diagnosis`.

    Attributes
    ----------
    verdict : {"identified", "weak", "not identified"}
    reasons, advice : tuple of str
    weak_classes : ndarray of int
    margin, margin_low, margin_high : ndarray of shape (n_classes,)
    """

    verdict: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    weak_classes: Array
    margin: Array
    margin_low: Array
    margin_high: Array


@dataclass(frozen=True, eq=False)
class Result:
    """All that a report draws on.

    Attributes
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
        As the method has it: people's mistakes are taken for independent.
    chances : ndarray of shape (n_items, n_classes)
        The posterior made less sure, as people err together; certain where the class is known.
    crowd, judgement : Crowd and Judgement, or None
        None where the method learns nothing of annotators.
    method : str
    settings, versions : dict
    history : list of Epoch
    objective : ndarray of shape (n_iterations,)
        Of an aggregation.
    chosen : ndarray of int, shape (n_items,), or None
        The class given to each item, where ties were broken; the likeliest unless given.
    anonymous : bool
        Whether annotators go by numbers.
    n_learned : int
        Items whose class was given to learn from; their truth is not in `table`.
    compared : bool
        Whether anything compares annotators; if not, nobody knows which labels are right.
    labels_alone : bool
        Whether the estimated truth is found without a classifier.
    """

    table: LabelTable
    posterior: Array
    chances: Array
    crowd: Crowd | None
    judgement: Judgement | None
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    history: Sequence[Epoch] = ()
    objective: Sequence[float] = ()
    chosen: NDArray[np.integer[Any]] | None = None
    anonymous: bool = False
    n_learned: int = 0
    compared: bool = True
    labels_alone: bool = True

    @cached_property
    def estimate(self) -> NDArray[np.integer[Any]]:
        """The class given to each item, shape (n_items,)."""
        return self.posterior.argmax(axis=1) if self.chosen is None else self.chosen

    @cached_property
    def confidence(self) -> Array:
        """How sure to be of it, shape (n_items,)."""
        sure: Array = self.chances[np.arange(len(self.chances)), self.estimate]
        return sure


def result_of(model: Fitted, *, anonymous: bool = False) -> Result:
    """Gather what a report says from a fitted model or a run that was read back.

    Parameters
    ----------
    model : fitted CrowdEstimator or Aggregation, or AggregatedRun
    anonymous : bool
        Call annotators by numbers, in the order of the report: "Annotator 1" has the highest skill.
        Verdict and advice name them so too.
    """
    if not hasattr(model, "posterior_"):
        raise InputError(f"{type(model).__name__} has learned nothing yet: call `fit` first.")
    table, diagnosis = model._scored(), _diagnosis(model)
    if anonymous:
        table, diagnosis = _without_names(table, diagnosis)
    return Result(
        table=table,
        posterior=model._believed(),
        chances=model._chances(),
        crowd=None if diagnosis is None else _crowd(diagnosis),
        judgement=None if diagnosis is None else _judgement(diagnosis),
        method=_method(model),
        settings=_settings(model),
        versions=getattr(model, "versions_", None) or versions(),
        history=getattr(model, "history_", ()),
        objective=list(getattr(model, "objective_", ())),
        chosen=model._estimate(),
        anonymous=anonymous,
        n_learned=int(model._learned().sum()),
        compared=model._compares(),
        labels_alone=model._labels_alone(),
    )


def ranking(table: LabelTable, crowd: Crowd | None) -> NDArray[np.int64]:
    """Order annotators by skill, the highest first; by labels where skills are not known."""
    by = table.labels_per_annotator() if crowd is None else crowd.skill
    return np.argsort(-by, kind="stable")


def _without_names(
    table: LabelTable, diagnosis: Diagnosis | None
) -> tuple[LabelTable, Diagnosis | None]:
    """Call annotators by numbers in the table and in all that is said of them."""
    if diagnosis is None:
        return table.replace(annotators=_numbered(table, None)), None
    table = table.replace(annotators=_numbered(table, _crowd(diagnosis)))
    learned = diagnosis.table.replace(annotators=table.annotators)
    flags = flag_annotators(diagnosis.crowd, diagnosis.copies, diagnosis.overlap, learned)
    return table, replace(diagnosis, table=learned, flags=flags)


def _numbered(table: LabelTable, crowd: Crowd | None) -> Names:
    # The order of names or of first labels could tell who is who; that of skills is on the page.
    names = np.empty(table.n_annotators, dtype=object)
    for place, who in enumerate(ranking(table, crowd), start=1):
        names[who] = f"Annotator {place}"
    return as_names(names)


def _diagnosis(model: Fitted) -> Diagnosis | None:
    if not hasattr(model, "confusion_") or model.table_.n_classes < 2:
        return None
    return model.diagnosis_


def _crowd(diagnosis: Diagnosis) -> Crowd:
    moments = diagnosis.crowd.moments
    low, high = diagnosis.crowd.skills()
    cells = moments.cell_mean, moments.cell_variance
    return Crowd(moments.skill_mean, low, high, *cells, diagnosis.crowd.counts, diagnosis.flags)


def _judgement(diagnosis: Diagnosis) -> Judgement:
    """Give the verdict, its words with the annotators' names of its table."""
    reasons = find_reasons(diagnosis)
    return Judgement(
        diagnosis.verdict,
        tuple(reason.said for reason in reasons),
        tuple(dict.fromkeys(reason.helps for reason in reasons)),
        diagnosis.weak_classes,
        *diagnosis.margins,
    )


def _method(model: Fitted) -> str:
    if isinstance(model, Aggregation):
        return name_of(model)
    return str(getattr(model, "method", type(model).__name__))


def _settings(model: Fitted) -> dict[str, Any]:
    if isinstance(model, CrowdEstimator):
        return plain_settings(model)
    return model.settings if isinstance(model, Aggregation | AggregatedRun) else {}
