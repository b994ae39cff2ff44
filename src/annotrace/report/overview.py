"""The first screen: how good labels and estimated truth are, the verdict, what to do next.

Shares come with a range. Its upper end is what the method itself says, which takes people's
mistakes for independent; the estimate allows for mistakes made together
(`annotrace.diagnosis.confidence`), and the lower end for the usual error of that. On eleven public
crowds (LabelMe by `auto`, ten by `hierarchical`) the true shares of right labels and of right
estimates were within their ranges each time; the estimates were off by .02 and .05 in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.calibration import share_interval
from annotrace.diagnosis.confidence import USUAL_ERROR
from annotrace.diagnosis.identifiability import TWO_SIDED_90
from annotrace.diagnosis.known_truth import Contradiction, contradiction
from annotrace.labels import LabelTable
from annotrace.report.result import Result

# An item is in doubt where its class is right with less than this chance.
SURE = 0.8
# A label is probably wrong where it is right with less than this chance.
WRONG = 0.1
_NAMED = 5


class Share(NamedTuple):
    """A share with its range, each 0 to 1; `measured` on so many items of known truth, or None."""

    value: float
    low: float
    high: float
    measured: int | None = None


class Step(NamedTuple):
    """Something to do: words, the annotators it is about, and the section that has more."""

    text: str
    names: tuple[str, ...] = ()
    more: int = 0
    section: str = ""


class Overview(NamedTuple):
    """What the first screen says.

    Attributes
    ----------
    n_items, n_annotators, n_labels, n_classes, n_unlabelled : int
    labels, truth : Share or None
        How many labels, and how many estimated classes, are right; None where it is not known.
    tone : {"good", "care", "bad", "unknown"}
    headline, lead : str
    reasons : tuple of str
    steps : tuple of Step
    n_doubtful, n_wrong, n_flagged : int
        Items in doubt, labels probably wrong, annotators with something to look at.
    """

    n_items: int
    n_annotators: int
    n_labels: int
    n_classes: int
    n_unlabelled: int
    labels: Share | None
    truth: Share | None
    tone: str
    headline: str
    lead: str
    reasons: tuple[str, ...]
    steps: tuple[Step, ...]
    n_doubtful: int
    n_wrong: int
    n_flagged: int


def overview_of(result: Result) -> Overview:
    """Work out what the first screen says."""
    table = result.table
    judged = result.judgement is not None and result.compared
    refuted = contradiction(table, result.estimate, result.confidence) if judged else None
    tone, headline, lead = _said(result, refuted)
    labelled = table.labels_per_item() > 0
    n_doubtful = int(np.sum((result.confidence < SURE) & labelled))
    n_wrong = int(np.sum(label_chances(result) < WRONG))
    return Overview(
        n_items=table.n_items,
        n_annotators=table.n_annotators,
        n_labels=table.n_labels,
        n_classes=table.n_classes,
        n_unlabelled=int(np.sum(~labelled)),
        labels=_labels_right(result),
        truth=_truth_right(result),
        tone=tone,
        headline=headline,
        lead=lead,
        reasons=() if result.judgement is None else result.judgement.reasons,
        steps=tuple(_steps(result, refuted, n_doubtful, n_wrong)),
        n_doubtful=n_doubtful,
        n_wrong=n_wrong,
        n_flagged=sum(map(is_worrying, result.crowd.flags)) if result.crowd is not None else 0,
    )


def label_chances(result: Result) -> NDArray[np.float64]:
    """Give the chance that each label is right, shape (n_labels,)."""
    chances: NDArray[np.float64] = result.chances[result.table.item, result.table.label]
    return chances


def is_worrying(flags: Sequence[str]) -> bool:
    """Tell whether flags say more than that labels are few."""
    return any(flag not in ("few labels", "no labels") for flag in flags)


def _labels_right(result: Result) -> Share | None:
    table = result.table
    if table.truth is not None and (known := table.truth[table.item] >= 0).any():
        return _measured((table.truth[table.item] == table.label)[known])
    if result.crowd is None or not result.compared or table.n_labels == 0:
        return None
    independent = float(result.posterior[table.item, table.label].mean())
    return _share(float(label_chances(result).mean()), independent, table.n_labels)


def _truth_right(result: Result) -> Share | None:
    table = result.table
    if table.truth is not None and (known := table.truth >= 0).any():
        return _measured((table.truth == result.estimate)[known])
    if result.crowd is None or not result.compared:
        return None
    independent = float(result.posterior.max(axis=1).mean())
    return _share(float(result.confidence.mean()), independent, table.n_items)


def _share(value: float, independent: float, n: int) -> Share:
    high = max(value, independent)
    high += TWO_SIDED_90 * float(np.sqrt(high * (1 - high) / max(n, 1)))
    return Share(value, max(value - USUAL_ERROR, 0.0), min(high, 1.0))


def _measured(right: NDArray[np.bool_]) -> Share:
    """Give a share that was counted, with its 90 % interval."""
    n, share = len(right), float(right.mean())
    low, high = share_interval(share, n)
    return Share(share, float(low), float(high), n)


def _said(result: Result, refuted: Contradiction | None) -> tuple[str, str, str]:
    judgement = result.judgement
    if refuted is not None:
        return "bad", "The labels do not show the truth", str(refuted)
    if judgement is None:
        return (
            "unknown",
            "Not known whether the labels show the truth",
            f"The method used, {result.method}, learns no skills of annotators: nobody is ranked "
            "here, and which items are in doubt is the method's own word, unchecked.",
        )
    if judgement.verdict == "identified":
        return (
            "good",
            "The labels show the truth",
            "Every class is called by its own name clearly more often than any other class is. "
            "What no labels can show is a mistake that everybody makes alike.",
        )
    if judgement.verdict == "weak":
        return "care", "Take the result with care", _how_weak(result.table, judgement.weak_classes)
    return (
        "bad",
        "From these labels the truth cannot be told",
        "Use nothing below before the reasons are dealt with: it may be wrong altogether.",
    )


def _how_weak(table: LabelTable, classes: NDArray[Any]) -> str:
    if len(classes) == 0:
        return "The labels show the truth only in part."
    names = ", ".join(map(str, table.classes[classes[:_NAMED]].tolist()))
    more = f" and {len(classes) - _NAMED} more" if len(classes) > _NAMED else ""
    return (
        f"The labels show the truth, but not well enough for {len(classes)} of "
        f"{table.n_classes} classes: {names}{more}."
    )


def _steps(
    result: Result, refuted: Contradiction | None, n_doubtful: int, n_wrong: int
) -> list[Step]:
    steps = [] if refuted is None else [Step(refuted.advice)]
    if result.judgement is None:
        steps.append(Step(_another_method(result)))
    else:
        steps += [Step(advice) for advice in result.judgement.advice]
        steps += _about_people(result)
    if n_doubtful:
        what = "1 item is" if n_doubtful == 1 else f"{n_doubtful:,} items are"
        steps.append(
            Step(f"{what} in doubt: look at the worst, or ask for more labels.", (), 0, "items")
        )
    if n_wrong:
        what = "1 label is" if n_wrong == 1 else f"{n_wrong:,} labels are"
        steps.append(Step(f"{what} probably wrong: check the worst.", (), 0, "labels"))
    return steps or [Step("Nothing needs doing: use the estimated truth as it is.")]


def _another_method(result: Result) -> str:
    if result.table.n_classes < 2:
        return "There is one class only, and nothing to tell apart: check the labels."
    return (
        "To know how far each annotator can be trusted, learn again with the recommended method, "
        "auto, or with annotrace aggregate where there are labels only."
    )


def _about_people(result: Result) -> list[Step]:
    said = {
        "spammer": "Leave out the labels of those whose answers do not depend on the item",
        "adversarial": "Ask those who are right less often than by chance what they understood",
        "copies": "Ask those who answer like another, even against all others, whether they are "
        "one person or share their answers; if not, they may know better than the others",
    }
    steps = []
    for kind, text in said.items():
        who = _flagged(result, kind)
        if who:
            steps.append(Step(text, tuple(who[:_NAMED]), max(len(who) - _NAMED, 0), "annotators"))
    return steps


def _flagged(result: Result, kind: str) -> list[str]:
    crowd, names = result.crowd, result.table.annotators
    flags = () if crowd is None else crowd.flags
    return [str(names[k]) for k, own in enumerate(flags) if any(f.startswith(kind) for f in own)]
