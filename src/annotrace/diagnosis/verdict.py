"""Can the truth be told from these labels? The verdict, its reasons and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.findings import Findings, examine
from annotrace.diagnosis.flags import FEW_LABELS_A_CLASS
from annotrace.diagnosis.reasons import LEAST_MARGIN, Reason, find_reasons, listed
from annotrace.labels.table import LabelTable

_SHOWN = 6

Verdict: TypeAlias = Literal["identified", "weak", "not identified"]


@dataclass(frozen=True)
class Diagnosis(Findings):
    """Whether labels show the truth, and why not: `str` says it in words.

    "identified" means that the labels, by the paper's condition and with error bars, admit one
    answer; it cannot mean that the answer is right, for a whole crowd may agree on a wrong name.

    Attributes
    ----------
    verdict : {"identified", "weak", "not identified"}
    reasons, advice : tuple of str
        Why, and what would help; empty if all is well.
    weak_classes : ndarray of int
        The classes that labels do not show enough of.
    **others
        See `Findings`.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    weak_classes: NDArray[np.int64]

    def __str__(self) -> str:
        lines = [self.summary(), *_first(self.reasons, "reasons")]
        if self.advice:
            lines += ["What would help:", *_first(self.advice, "advice")]
        people = _people(self)
        return "\n".join([*lines, "Annotators:", *people] if people else lines)

    def summary(self) -> str:
        """Give the verdict in one sentence."""
        if self.verdict == "identified":
            least = float(self.margins.low.min())
            return (
                "Identified: every class is called by its own name more often than any other "
                f"class is, by {least:.2f} or more."
            )
        if self.verdict == "not identified":
            return "Not identified: from these labels the truth cannot be told."
        if len(self.weak_classes) == 0:
            return "Weak: take the result with care."
        names = listed(self.table.classes[self.weak_classes].tolist())
        return (
            f"Weak: take the result with care for {len(self.weak_classes)} of "
            f"{self.table.n_classes} classes ({names})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Give the verdict and what it rests on in plain types, for a file."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "advice": list(self.advice),
            "margins": [
                {"class": name, "margin": value, "low": low, "high": high, "labels": labels}
                for name, value, low, high, labels in zip(
                    self.table.classes.tolist(),
                    *(np.round(part, 4).tolist() for part in self.margins),
                    np.round(self.labels_behind, 1).tolist(),
                    strict=True,
                )
            ],
            "information": round(self.information.value, 4),
            "groups": int(self.groups.max(initial=-1)) + 1,
            "smallest_singular_value": round(self.smallest_singular_value, 4),
        }


def diagnose(
    table: LabelTable,
    posterior: NDArray[Any],
    confusion: NDArray[Any],
    *,
    prior: NDArray[Any] | None = None,
    gold: NDArray[Any] | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Tell whether labels show the truth, for which classes they do not, and what would help.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
        Truth of each item, classifier and labels combined.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        The matrices by which labels were combined, [annotator, true, reported].
    prior : ndarray of shape (n_classes,) or (n_items, n_classes), optional
        How common classes are, where the truth was found from labels alone; or what a classifier
        that has not seen an item's labels says of it. Without it a classifier is taken to tie the
        items together, and its word is had from the posterior by taking the labels out.
    gold : ndarray of int, shape (n_items,), optional
        The code of the class of items of which it is known for certain, -1 elsewhere. Skills are
        measured against it there, and against what the truth may be of all other items.
    seed : int
        Of the draws that error bars come from.
    """
    found = examine(table, posterior, confusion, prior, gold, seed)
    reasons = find_reasons(found)
    weak = np.unique([k for reason in reasons for k in reason.classes]).astype(np.int64)
    return Diagnosis(
        **vars(found),
        verdict=_judge(reasons, found),
        reasons=tuple(reason.said for reason in reasons),
        advice=tuple(dict.fromkeys(reason.helps for reason in reasons)),
        weak_classes=weak,
    )


def _judge(reasons: list[Reason], found: Findings) -> Verdict:
    mostly_weak = np.mean(found.margins.low <= LEAST_MARGIN) > 0.5
    if mostly_weak or any(reason.fatal for reason in reasons):
        return "not identified"
    return "weak" if reasons else "identified"


def _first(said: tuple[str, ...], name: str) -> list[str]:
    """Give the gravest as lines, and where the others are."""
    lines = [f"  - {line}" for line in said[:_SHOWN]]
    if len(said) > _SHOWN:
        lines.append(f"  - ... and {len(said) - _SHOWN} more, in `{name}` (run.json has them).")
    return lines


_KINDS = {
    "spammer": "Answers do not depend on the item (leave them out)",
    "adversarial": "Right less often than by chance",
    "mixes up": "Mixes up two classes",
    "takes": "Takes one class for another",
    "copies": "Same answers as another, even against all others (one person, or answers shared)",
    "few labels": f"Few labels, less than {FEW_LABELS_A_CLASS} a class",
    "no labels": "No labels, taken for anybody",
}


def _people(diagnosis: Diagnosis) -> list[str]:
    """Name the annotators of each flag."""
    lines = []
    for kind, said in _KINDS.items():
        # Names of classes and annotators in a flag may be those of kinds.
        flagged = [any(flag.startswith(kind) for flag in own) for own in diagnosis.flags]
        who = np.flatnonzero(flagged)
        if len(who):
            lines.append(f"  - {said}: {listed(diagnosis.table.annotators[who].tolist())}.")
    return lines
