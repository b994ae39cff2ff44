"""Do the labels identify the true classes? The verdict, its reasons and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.beta_interval import TWO_SIDED_90
from annotrace.crowd.dependence import ErrorDependence
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.estimation_loss import estimation_loss
from annotrace.diagnosis.flags import Flags, flag_annotators
from annotrace.diagnosis.identifiability import (
    Estimate,
    Overlap,
    best_names,
    class_distances,
    class_overlap,
    connected_groups,
    margins,
    mean_confusion,
    votes_of_others,
)
from annotrace.diagnosis.prediction import PairInformation, predict_labels
from annotrace.diagnosis.reasons import MIN_INFORMATION, MIN_MARGIN, Reason, find_reasons
from annotrace.diagnosis.wording import (
    describe_groups,
    describe_reason,
    list_names,
    summarize_flags,
)
from annotrace.errors import InputError
from annotrace.labels.table import LabelTable

Verdict: TypeAlias = Literal["identified", "weak", "not identified"]

_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured on a fitted crowd.

    Attributes
    ----------
    margins : Estimate
        Dominance margin of each class with its 90 % interval, arrays of shape (n_classes,).
    rivals : ndarray of int, shape (n_classes,)
        The other class that is most often given each class's name.
    class_labels : ndarray of shape (n_classes,)
        Expected labels of items of each true class; ``result.annotators.counts`` has every cell.
    best_at : tuple of tuple of int
        For each class, up to three annotators with the highest accuracy, if significantly above .5.
    information : Estimate
        Nats per label by which the truth predicts labels better than label marginals do.
    pairs : tuple of PairInformation
        How well each class is distinguished from those most like it.
    groups : ndarray of int, shape (n_annotators,)
        Which annotators items connect: 0 is the largest group, -1 has no labels.
    overlap : Overlap
        Whether annotators have labelled items of the same classes.
    class_distances : ndarray of shape (n_classes, n_classes)
        How differently every two classes are reported, 0 to 1.
    best_names : ndarray of int, shape (n_classes,)
        The name that fits each class best; anything but its own is a permuted solution.
    flags : tuple of tuple of Flag
        Remarks about each annotator.
    dependence : ErrorDependence
        How far annotators share errors: estimated correlation, effective votes and groups.
    accuracy_bar : float
        Half the width of the 90 % interval that shared errors leave of any accuracy.
    is_divided : bool
        Whether annotators with low skill agree with each other beyond what the model explains.
    estimation_loss : float
        Expected loss of accuracy because confusion matrices are estimated.
    share_of_three : float
        Of the labels that are informative about annotators, the share that is on items with three
        or more labels, or with a gold class.
    n_compared : int
        Labels that are informative about annotators, counts of earlier labels included.
    has_classifier : bool
        Whether a classifier connects the items.
    table : LabelTable
        Its names of annotators and classes are used in texts.
    """

    margins: Estimate
    rivals: NDArray[np.int64]
    class_labels: NDArray[np.float64]
    best_at: tuple[tuple[int, ...], ...]
    information: Estimate
    pairs: tuple[PairInformation, ...]
    groups: NDArray[np.int64]
    overlap: Overlap
    class_distances: NDArray[np.float64]
    best_names: NDArray[np.int64]
    flags: tuple[Flags, ...]
    dependence: ErrorDependence
    accuracy_bar: float
    is_divided: bool
    estimation_loss: float
    share_of_three: float
    n_compared: int
    has_classifier: bool
    table: LabelTable


@dataclass(frozen=True, eq=False)
class Diagnosis(Measurements):
    """Whether labels identify the true classes, and why not; `str` returns it in words.

    "identified" means that the labels, by the paper's condition and with error bars, admit one
    answer. It cannot mean that the answer is right: a whole crowd may agree on a wrong name.

    Attributes
    ----------
    verdict : {"identified", "weak", "not identified"}
    reasons : tuple of Reason
        Why, the gravest first; empty if the verdict is "identified".
    **others
        See `Measurements`.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]

    @property
    def weak_classes(self) -> NDArray[np.int64]:
        """The classes that labels do not show well enough."""
        return np.unique([k for r in self.reasons for k in r.weak_classes]).astype(np.int64)

    @property
    def reason_texts(self) -> tuple[str, ...]:
        """The reasons in words."""
        return tuple(describe_reason(reason, self.table)[0] for reason in self.reasons)

    @property
    def advice(self) -> tuple[str, ...]:
        """What would help, in words."""
        advice = (describe_reason(reason, self.table)[1] for reason in self.reasons)
        return tuple(dict.fromkeys(advice))

    def __str__(self) -> str:
        lines = [self.summary(), *_first(self.reason_texts, "reasons")]
        if self.advice:
            lines += ["What would help:", *_first(self.advice, "advice")]
        about = summarize_flags(self.flags, self.table)
        about += describe_groups(self.dependence.groups, self.table)
        annotators = [f"  - {line}" for line in about]
        return "\n".join([*lines, "Annotators:", *annotators] if annotators else lines)

    def summary(self) -> str:
        """Return the verdict in one sentence."""
        if self.verdict == "identified":
            least = float(self.margins.low.min())
            return (
                "Identified: items of each class receive its label more often than items of any "
                f"other class do, by {least:.2f} or more."
            )
        if self.verdict == "not identified":
            return "Not identified: these labels do not determine the true classes."
        if len(self.weak_classes) == 0:
            return "Weak: use the result with care."
        names = list_names(self.table.classes[self.weak_classes].tolist())
        return (
            f"Weak: use the result with care for {len(self.weak_classes)} of "
            f"{self.table.n_classes} classes ({names})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict and what it rests on in plain types, for a file."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reason_texts),
            "advice": list(self.advice),
            "margins": [
                {"class": name, "margin": value, "low": low, "high": high, "labels": labels}
                for name, value, low, high, labels in zip(
                    self.table.classes.tolist(),
                    *(np.round(part, 4).tolist() for part in self.margins),
                    np.round(self.class_labels, 1).tolist(),
                    strict=True,
                )
            ],
            "information": round(self.information.value, 4),
            "groups": int(self.groups.max(initial=-1)) + 1,
            "shared_errors": {
                "correlation": round(self.dependence.correlation, 4),
                "low": round(self.dependence.low, 4),
                "high": round(self.dependence.high, 4),
                "labels_per_item": round(self.dependence.n_votes, 2),
                "effective_votes": round(self.dependence.effective_votes, 2),
                "groups": [
                    self.table.annotators[list(group.annotators)].tolist()
                    for group in self.dependence.groups
                ],
            },
            "estimation_loss": round(self.estimation_loss, 4),
        }


def diagnose(result: CrowdResult) -> Diagnosis:
    """Judge whether labels identify the true classes, and for which classes they do not.

    Parameters
    ----------
    result : CrowdResult
        Of a method that models annotators.
    """
    if result.table.n_classes < 2:
        raise InputError("Expected two classes or more to diagnose, but the labels have one.")
    found = measure(result)
    reasons = find_reasons(found)
    return Diagnosis(**vars(found), verdict=_judge(reasons, found), reasons=reasons)


def measure(result: CrowdResult) -> Measurements:
    """Measure everything that the verdict rests on."""
    table, annotators = result.table, result.annotators
    mean, variance = mean_confusion(annotators)
    bars, rivals = margins(mean, variance)
    distances = class_distances(mean)
    labelled = annotators.counts.sum(axis=2), votes_of_others(table)
    overlap = max(map(class_overlap, labelled), key=lambda each: each.separation)
    prediction = predict_labels(result)
    information = prediction.information()
    comparable = overlap.is_comparable and information.low > MIN_INFORMATION
    n_earlier = 0 if result.prior_counts is None else result.prior_counts.sum()
    return Measurements(
        margins=bars,
        rivals=rivals,
        class_labels=annotators.counts.sum(axis=(0, 2)),
        best_at=_best_at(result),
        information=information,
        pairs=tuple(prediction.pair_information(_most_alike(distances, rivals))),
        groups=connected_groups(table, result.gold >= 0),
        overlap=overlap,
        class_distances=distances,
        best_names=best_names(mean),
        flags=flag_annotators(result, comparable=comparable),
        dependence=annotators.dependence,
        accuracy_bar=TWO_SIDED_90 * float(annotators.shared_error.mean()),
        is_divided=result.model_weight < 1,
        estimation_loss=estimation_loss(result),
        share_of_three=_share_of_three(result),
        n_compared=int(np.sum(result.is_counted[table.item]) + n_earlier),
        has_classifier=result.has_classifier,
        table=table,
    )


def _share_of_three(result: CrowdResult) -> float:
    """Return the share of informative labels on items with three or more, or a gold class."""
    if result.prior_counts is not None:
        return 1.0
    n_labels = result.table.labels_per_item() * result.is_counted
    enough = (n_labels >= 3) | (result.gold >= 0)
    return float(n_labels[enough].sum() / max(n_labels.sum(), 1))


def _most_alike(distances: NDArray[Any], rivals: NDArray[np.int64]) -> list[tuple[int, int]]:
    """List each class with its rival, and with the class that is reported most like it."""
    nearest = (distances + np.eye(len(distances))).argmin(axis=0)
    pairs = [(k, int(other)) for others in (nearest, rivals) for k, other in enumerate(others)]
    return sorted({(min(pair), max(pair)) for pair in pairs})


def _best_at(result: CrowdResult, n: int = 3) -> tuple[tuple[int, ...], ...]:
    """List the annotators whose accuracy in each class is significantly above one half."""
    low = result.annotators.diagonal_interval()[0]
    low[result.table.labels_per_annotator() == 0] = 0
    best = np.argsort(-low, axis=0, kind="stable")[:n]
    return tuple(
        tuple(int(who) for who in best[:, k] if low[who, k] > 0.5) for k in range(low.shape[1])
    )


def _judge(reasons: tuple[Reason, ...], found: Measurements) -> Verdict:
    mostly_weak = np.mean(found.margins.low <= MIN_MARGIN) > 0.5
    if mostly_weak or any(reason.is_fatal for reason in reasons):
        return "not identified"
    return "weak" if reasons else "identified"


def _first(texts: tuple[str, ...], name: str) -> list[str]:
    """Return the gravest as lines, and where the others are."""
    lines = [f"  - {line}" for line in texts[:_SHOWN]]
    if len(texts) > _SHOWN:
        lines.append(f"  - ... and {len(texts) - _SHOWN} more in `{name}` and in run.json.")
    return lines
