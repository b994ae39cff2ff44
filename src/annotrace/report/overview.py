"""The first screen: quality of labels and estimated classes, the verdict, and what to do next.

Shares come with a range. Its upper end follows from the posterior, which assumes independent
errors; the estimate allows for errors that annotators share (`annotrace.diagnosis.confidence`), and
the lower end for the usual error of that, or for what shared errors leave unknown if it is more. On
15 public crowds by `hierarchical` the true share of correct labels was within its range in 14, that
of correct estimates in 13; without `hitspam_crowdflower`, where a third of the estimates are wrong
and nothing shows it, the estimates were off by .02 and .04 on average.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.beta_interval import TWO_SIDED_90
from annotrace.diagnosis import Diagnosis
from annotrace.diagnosis.calibration import share_interval
from annotrace.diagnosis.confidence import USUAL_ERROR, independent_posterior
from annotrace.diagnosis.flags import FlagKind
from annotrace.diagnosis.known_truth import Contradiction, find_contradiction
from annotrace.diagnosis.wording import describe_groups
from annotrace.errors import count
from annotrace.report.review import CERTAIN
from annotrace.report.view import Array, ReportView

# A label is probably wrong if it is correct with a lower probability.
WRONG = 0.1
_NAMED = 5
_ABOUT_ANNOTATORS: dict[FlagKind, str] = {
    "spammer": "Leave out the labels of people who answer without looking at the item",
    "adversarial": "Ask people who are correct less often than by chance how they understood the "
    "task",
}


class Share(NamedTuple):
    """A share with its range, 0 to 1; `n_measured` items of known truth, or None if estimated."""

    value: float
    low: float
    high: float
    n_measured: int | None = None


class Step(NamedTuple):
    """Something to do: text, the annotators concerned, and the section with more about it."""

    text: str
    names: tuple[str, ...] = ()
    n_more: int = 0
    section: str = ""


class Headline(NamedTuple):
    """The verdict for managers; `tone` is "good", "care", "bad" or "unknown"."""

    tone: str
    title: str
    lead: str


class Overview(NamedTuple):
    """What the first screen says.

    Attributes
    ----------
    labels, truth : Share or None
        The shares of correct labels and of correct estimated classes; None if unknown.
    n_unlabelled, n_uncertain, n_wrong, n_flagged : int
        Items without labels, uncertain items, labels that are probably wrong, and annotators who
        need attention.
    """

    headline: Headline
    labels: Share | None
    truth: Share | None
    reasons: tuple[str, ...]
    steps: tuple[Step, ...]
    n_unlabelled: int
    n_uncertain: int
    n_wrong: int
    n_flagged: int


def overview_of(view: ReportView) -> Overview:
    """Compute what the first screen says."""
    diagnosis = view.diagnosis
    judged = diagnosis is not None and view.result.is_comparable
    contradiction = find_contradiction(view.result) if judged else None
    labelled = view.table.labels_per_item() > 0
    n_uncertain = int(np.sum((view.confidence < CERTAIN) & labelled))
    n_wrong = int(np.sum(view.label_probabilities < WRONG))
    flags = () if diagnosis is None else diagnosis.flags
    return Overview(
        headline=_headline(view, contradiction),
        labels=_correct_labels(view),
        truth=_correct_estimates(view),
        reasons=() if diagnosis is None else _reasons(diagnosis),
        steps=tuple(_steps(view, contradiction, n_uncertain, n_wrong)),
        n_unlabelled=int(np.sum(~labelled)),
        n_uncertain=n_uncertain,
        n_wrong=n_wrong,
        n_flagged=sum(any(flag.needs_attention for flag in own) for own in flags),
    )


def _reasons(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the reasons for doubt, and who errs together."""
    groups = describe_groups(diagnosis.dependence.groups, diagnosis.table)
    return (*diagnosis.reason_texts, *groups)


def _correct_labels(view: ReportView) -> Share | None:
    table = view.table
    if table.truth is not None and (known := table.truth[table.item] >= 0).any():
        return _measured((table.truth[table.item] == table.label)[known])
    if table.n_labels == 0:
        return None

    def by_posterior(posterior: Array, items: slice, labels: slice) -> Array:
        chosen: Array = posterior[table.item[labels] - items.start, table.label[labels]]
        return chosen

    return _estimated(view, view.label_probabilities, by_posterior)


def _correct_estimates(view: ReportView) -> Share | None:
    truth, estimate = view.table.truth, view.result.estimate
    if truth is not None and (known := truth >= 0).any():
        return _measured((truth == estimate)[known])

    def by_posterior(posterior: Array, items: slice, labels: slice) -> Array:
        chosen: Array = posterior[np.arange(len(posterior)), estimate[items]]
        return chosen

    return _estimated(view, view.confidence, by_posterior)


def _estimated(
    view: ReportView, each: Array, by_posterior: Callable[[Array, slice, slice], Array]
) -> Share | None:
    """Return the mean of some probabilities, at most what independent errors would make it.

    Parameters
    ----------
    view : ReportView
    each : ndarray of shape (n,)
        Calibrated probabilities.
    by_posterior : callable
        Returns the probabilities of consecutive items and their labels by a posterior of the items.
    """
    if view.diagnosis is None or not view.result.is_comparable:
        return None
    value = float(each.mean())
    independent = sum(
        by_posterior(independent_posterior(view.result, items), items, labels).sum()
        for items, labels in view.table.blocks()
    )
    high = max(value, float(independent / len(each)))
    high += TWO_SIDED_90 * float(np.sqrt(high * (1 - high) / max(len(each), 1)))
    return Share(value, max(value - likely_error(view), 0.0), min(high, 1.0))


def likely_error(view: ReportView) -> float:
    """Return how far the estimated shares may be too high."""
    return USUAL_ERROR if view.diagnosis is None else max(USUAL_ERROR, view.diagnosis.accuracy_bar)


def _measured(correct: NDArray[np.bool_]) -> Share:
    n, share = len(correct), float(correct.mean())
    low, high = share_interval(share, n)
    return Share(share, float(low), float(high), n)


def _headline(view: ReportView, contradiction: Contradiction | None) -> Headline:
    diagnosis = view.diagnosis
    if contradiction is not None:
        return Headline("bad", "Known answers contradict the result", str(contradiction))
    if diagnosis is None:
        return Headline(
            "unknown",
            "The quality of the labels is unknown",
            f"The method used, {view.method}, does not model annotators: nobody is ranked here, "
            "and the probabilities of items are the method's own, unchecked.",
        )
    if diagnosis.verdict == "identified":
        return Headline(
            "good",
            "The labels identify the true classes",
            "Items of each class receive its label clearly more often than items of any other "
            "class do. No labels can reveal an error that everybody makes.",
        )
    if diagnosis.verdict == "weak":
        return Headline("care", "Use the result with care", _weakness(view, diagnosis))
    return Headline(
        "bad",
        "These labels do not identify the true classes",
        "Do not use the results below until the reasons have been dealt with: they may be "
        "completely wrong.",
    )


def _weakness(view: ReportView, diagnosis: Diagnosis) -> str:
    weak, table = diagnosis.weak_classes, view.table
    if len(weak) == 0:
        return "The labels identify the true classes only in part."
    names = ", ".join(map(str, table.classes[weak[:_NAMED]].tolist()))
    more = f" and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    return (
        "The labels identify the true classes, but not well enough for "
        f"{len(weak)} of {table.n_classes} classes: {names}{more}."
    )


def _steps(
    view: ReportView, contradiction: Contradiction | None, n_uncertain: int, n_wrong: int
) -> list[Step]:
    steps = [] if contradiction is None else [Step(contradiction.advice)]
    if view.diagnosis is None:
        steps.append(Step(_another_method(view)))
    else:
        steps += [Step(advice) for advice in view.diagnosis.advice]
        steps += _about_annotators(view.diagnosis)
    if n_uncertain:
        what = f"{count(n_uncertain, 'item')} {'is' if n_uncertain == 1 else 'are'} uncertain"
        steps.append(Step(f"{what}: look at the worst, or collect more labels.", section="items"))
    if n_wrong:
        what = f"{count(n_wrong, 'label')} {'is' if n_wrong == 1 else 'are'} probably wrong"
        steps.append(Step(f"{what}: check the worst.", section="labels"))
    return steps or [Step("Nothing to do: use the estimated classes as they are.")]


def _another_method(view: ReportView) -> str:
    if view.table.n_classes < 2:
        return "There is one class only, so there is nothing to distinguish: check the labels."
    return (
        "To see how reliable each annotator is, fit again with the recommended method, auto, or "
        "use annotrace aggregate if there are labels only."
    )


def _about_annotators(diagnosis: Diagnosis) -> list[Step]:
    steps = []
    for kind, text in _ABOUT_ANNOTATORS.items():
        flagged = [any(flag.kind == kind for flag in own) for own in diagnosis.flags]
        names = [str(name) for name in diagnosis.table.annotators[np.array(flagged)].tolist()]
        if names:
            more = max(len(names) - _NAMED, 0)
            steps.append(Step(text, tuple(names[:_NAMED]), more, "annotators"))
    return steps
