"""Reasons to doubt that labels show the truth, in words, each with what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from annotrace.diagnosis.beta_quantiles import beta_interval
from annotrace.diagnosis.findings import Findings

# On simulated crowds (benchmarks/diagnosis.py, seeds 100 to 115) the lower end is up to .08 where
# the true margin is within .03 of nothing, for the classifier takes to the commoner name, and at
# least .17 where it is above .15.
LEAST_MARGIN = 0.1
LEAST_LABELS = 10
LEAST_INFORMATION = 0.005
# Of the gain that matrices claim, what is left on labels that they have not seen: .95 and more on
# simulated crowds that could be learned, .7 and less where two classes could not be told apart. As
# 400 single labels of 16 easy crowds leave .76 to 1.05, it must also be less than chance explains.
LEAST_KEPT = 0.8
# So small a share of labels outside the largest group is worth a word, not a verdict.
STRAY_LABELS = 0.05
_SHOWN = 5


class Reason(NamedTuple):
    """One thing that is wrong.

    Attributes
    ----------
    said, helps : str
        What is wrong, and what would help.
    classes : tuple of int
        The classes that it is wrong with; all of them if empty.
    fatal : bool
        Whether nothing can be trusted.
    """

    said: str
    helps: str
    classes: tuple[int, ...] = ()
    fatal: bool = False


def find_reasons(found: Findings) -> list[Reason]:
    """List all reasons to doubt, the gravest first."""
    if found.n_compared == 0:
        return [_nothing_compared()]
    checks = (
        _no_information,
        _permuted,
        _not_connected,
        _not_overlapping,
        _never_reported,
        _few_labels,
        _small_margins,
        _alike,
    )
    return [reason for check in checks for reason in check(found)]


def listed(names: Sequence[Any], n_shown: int = _SHOWN) -> str:
    """Write names as a list: 'a', 'b' and 3 more."""
    shown = ", ".join(
        repr(name) if isinstance(name, str) else str(name) for name in names[:n_shown]
    )
    return shown if len(names) <= n_shown else f"{shown} and {len(names) - n_shown} more"


def _nothing_compared() -> Reason:
    return Reason(
        "No item has two labels, so there is nothing to compare annotators by.",
        "Have some items labelled twice or more, learn from some whose class is known, or fit a "
        "classifier on features.",
        fatal=True,
    )


def _no_information(found: Findings) -> list[Reason]:
    if found.information.low > LEAST_INFORMATION:
        return []
    return [
        Reason(
            "Labels depend on the items no more than chance would have it: annotators answer by "
            "habit, or there are too few labels to see otherwise.",
            "Check that the task is understood, on a few items of known truth; then collect new "
            "labels by those who pass.",
            fatal=True,
        )
    ]


def _permuted(found: Findings) -> list[Reason]:
    classes = found.table.classes
    wrong = np.flatnonzero(
        (found.names != np.arange(len(classes))) & (found.table.labels_per_class() > 0)
    )
    if len(wrong) == 0:
        return []
    again = (
        "Collect more labels of each item. If it stays so, the "
        if found.labels_alone
        else "Fit again with another seed or a smaller penalty. If it stays so, the "
    )
    swaps = [f"{classes[k]!s} is called {classes[found.names[k]]!s}" for k in wrong[:_SHOWN]]
    return [
        Reason(
            "Names of classes came out permuted: " + ", ".join(swaps) + " most of all.",
            f"{again}annotators themselves swap the names, and only items of known truth can tell.",
            tuple(wrong.tolist()),
            fatal=True,
        )
    ]


def _not_connected(found: Findings) -> list[Reason]:
    n_labels = found.table.labels_per_annotator()
    outside = found.groups > 0
    if not found.labels_alone or n_labels[outside].sum() <= STRAY_LABELS * n_labels.sum():
        return []
    first, others = found.table.annotators[found.groups == 0], found.table.annotators[outside]
    return [
        Reason(
            f"Annotators fall into {found.groups.max() + 1:,} groups that share no item, and "
            "nothing compares one group with another.",
            f"Give some items of {listed(first.tolist(), 2)} to {listed(others.tolist(), 2)} too.",
        )
    ]


def _not_overlapping(found: Findings) -> list[Reason]:
    if not found.overlap.apart:
        return []
    names, side = found.table.classes, found.overlap.side
    one, other = listed(names[side].tolist()), listed(names[~side].tolist())
    return [
        Reason(
            f"Those who label items of {one} hardly ever label items of {other}: whether they "
            "would mix them up is not known.",
            "Give each annotator items of all classes, as they come.",
        )
    ]


def _never_reported(found: Findings) -> list[Reason]:
    never = np.flatnonzero(found.table.labels_per_class() == 0)
    if len(never) == 0:
        return []
    names = listed(found.table.classes[never].tolist())
    return [
        Reason(
            f"Nobody ever reported {names}.",
            f"Leave {names} out of the classes, or have items labelled that belong there.",
            tuple(never.tolist()),
        )
    ]


def _few_labels(found: Findings) -> list[Reason]:
    n_labels = found.labels_behind
    few = np.flatnonzero((n_labels < LEAST_LABELS) & (found.table.labels_per_class() > 0))
    if len(few) == 0:
        return []
    names = listed(found.table.classes[few].tolist())
    return [
        Reason(
            f"Fewer than {LEAST_LABELS} labels stand behind {names}.",
            f"Collect labels on items that seem to be {names}.",
            tuple(few.tolist()),
        )
    ]


def _small_margins(found: Findings) -> list[Reason]:
    enough = (found.labels_behind >= LEAST_LABELS) & (found.table.labels_per_class() > 0)
    small = np.flatnonzero((found.margins.low <= LEAST_MARGIN) & enough)
    worst_first = small[np.argsort(found.margins.low[small], kind="stable")]
    return [_small_margin(found, int(k)) for k in worst_first]


def _small_margin(found: Findings, k: int) -> Reason:
    name, rival = found.table.classes[k], found.table.classes[found.rivals[k]]
    value, low, high = (float(part[k]) for part in found.margins)
    relation = "nearly as often as" if value > 0 else "as often as, or more often than,"
    said = (
        f"Items of class {rival} are called {name} {relation} items of class {name} are: a lead "
        f"of {value:.2f} ({low:.2f} to {high:.2f})."
    )
    if value <= LEAST_MARGIN:
        helps = (
            f"Explain to annotators how {name} differs from {rival}, and give items of known "
            "truth of both."
        )
    else:
        needed = found.labels_behind[k] * (((value - low) / (value - LEAST_MARGIN)) ** 2 - 1)
        helps = (
            f"About {_rounded(needed)} more labels on items that seem to be {name}"
            f"{_by_whom(found, k)}."
        )
    return Reason(said, helps, (k,))


def _by_whom(found: Findings, k: int) -> str:
    """Name those who are surely best at a class."""
    moments = found.crowd.moments
    low = beta_interval(moments.cell_mean[:, k, k], moments.cell_variance[:, k, k], 0.9)[0]
    low[found.table.labels_per_annotator() == 0] = 0
    best = np.argsort(-low, kind="stable")[:3]
    best = best[low[best] > 0.5]
    if len(best) == 0:
        return ""
    return f", best by those who know it: {listed(found.table.annotators[best].tolist())}"


def _rounded(number: float) -> str:
    """Write a number of labels with one figure that counts, rounded up."""
    number = max(number, 10.0)
    unit = 10 ** int(np.log10(number))
    return f"{int(np.ceil(number / unit) * unit):,}"


def _alike(found: Findings) -> list[Reason]:
    reasons = []
    for (i, k), gain, claimed in found.pairs:
        one, other = found.table.classes[i], found.table.classes[k]
        if gain.low < LEAST_INFORMATION:
            said = (
                f"Labels do not tell {one} from {other}: keeping them apart predicts no other "
                "label better than making one class of them."
            )
        elif gain.value < LEAST_KEPT * claimed and gain.high < claimed:
            said = (
                f"Labels tell {one} from {other} less well than it seems: keeping them apart helps "
                f"to predict other labels {gain.value / claimed:.0%} as much as was learned."
            )
        else:
            continue
        helps = (
            f"Explain how {one} differs from {other}, collect labels of both, or make one class of "
            "them."
        )
        reasons.append(Reason(said, helps, (i, k)))
    return reasons
