"""Reasons to doubt that labels identify the true classes.

Reasons are data; `annotrace.diagnosis.wording` turns them into words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from annotrace.diagnosis.verdict import Measurements

ReasonKind: TypeAlias = Literal[
    "nothing-compared",
    "no-information",
    "permuted",
    "separate-groups",
    "separate-classes",
    "never-reported",
    "few-labels",
    "small-margin",
    "indistinct",
    "overstated",
    "divided",
    "shared-errors",
    "unknown-annotators",
    "two-labels",
]
FATAL = ("nothing-compared", "no-information", "permuted")

# On simulated crowds (benchmarks/diagnosis.py, seeds 100 to 115) the lower end is up to .08 if
# the true margin is within .03 of zero, and at least .17 if it is above .15.
MIN_MARGIN = 0.1
MIN_LABELS = 10
# Lower end of the information, nats per label. Spammers alone (benchmarks/diagnosis.py) reach .002
# from labels (seeds 100 to 115) and .012 if a classifier has fitted their noise (1000 to 1004); the
# least informative of 16 public crowds, hitspam_mturk, has .036.
MIN_INFORMATION = 0.02
# Lower end of the gain from separating two classes: seeds 100 to 115 have at most .002 if spammers
# label alone, and at least .035 if the true margin is above .15.
MIN_GAIN = 0.005
# Share of the gain claimed by the matrices that remains on labels they have not seen: .95 and more
# on simulated crowds (seeds 100 to 115) that could be learned, .7 and less if two classes could not
# be distinguished. Since 400 single labels of 16 easy crowds keep .76 to 1.05, it must also be less
# than chance explains.
MIN_KEPT = 0.8
# Estimated correlation of errors; its standard error if that is more. By benchmarks/verdicts.py,
# seeds 0 to 11 and 4000 to 4013 (`--limits` shows the shares of verdicts that are right and of easy
# crowds that are identified for other limits).
MAX_CORRELATION = 0.08
# Expected loss of accuracy because the confusion matrices are estimated. On the same crowds with
# independent errors it has a correlation of .88 with the true loss, which is twice as large. With
# .01, .012 and .015 "identified" is right in 93, 88 and 84 % of the cases where it is said.
MAX_LOSS = 0.01
# Share of labels on items with three or more labels, or a gold class.
MIN_COMPARED_THREE = 0.5
# A smaller share of labels outside the largest group is no reason.
MAX_STRAY_LABELS = 0.05


@dataclass(frozen=True)
class Reason:
    """One reason to doubt the result.

    Attributes
    ----------
    kind : str
        One of `ReasonKind`.
    classes : tuple of int
        The classes concerned; all if empty.
    others : tuple of int
        The classes that these are confused with, called or separated from.
    annotators : tuple of int
        Annotators concerned: those outside the largest group, or those who know a class best.
    numbers : mapping from str to float
        What was measured.
    """

    kind: ReasonKind
    classes: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    annotators: tuple[int, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_fatal(self) -> bool:
        """Whether nothing in the result can be trusted."""
        return self.kind in FATAL

    @property
    def weak_classes(self) -> tuple[int, ...]:
        """The classes that labels do not show well enough."""
        return () if self.kind == "separate-classes" else self.classes


def find_reasons(found: Measurements) -> tuple[Reason, ...]:
    """List all reasons for doubt, the gravest first."""
    if found.n_compared == 0:
        return (Reason("nothing-compared"),)
    checks: tuple[Callable[[Measurements], list[Reason]], ...] = (
        _no_information,
        _permuted,
        _separate_groups,
        _separate_classes,
        _rarely_reported,
        _small_margins,
        _indistinct,
        _divided,
        _shared_errors,
        _unknown_annotators,
        _two_labels,
    )
    return tuple(reason for check in checks for reason in check(found))


def _no_information(found: Measurements) -> list[Reason]:
    if found.information.low > MIN_INFORMATION:
        return []
    return [Reason("no-information", numbers=found.information._asdict())]


def _permuted(found: Measurements) -> list[Reason]:
    is_reported = found.table.labels_per_class() > 0
    wrong = np.flatnonzero((found.best_names != np.arange(len(is_reported))) & is_reported)
    if len(wrong) == 0:
        return []
    return [Reason("permuted", tuple(wrong.tolist()), tuple(found.best_names[wrong].tolist()))]


def _separate_groups(found: Measurements) -> list[Reason]:
    n_labels = found.table.labels_per_annotator()
    outside = found.groups > 0
    is_stray = n_labels[outside].sum() <= MAX_STRAY_LABELS * n_labels.sum()
    if found.has_classifier or is_stray:
        return []
    numbers = {"groups": float(found.groups.max() + 1)}
    annotators = tuple(np.flatnonzero(outside).tolist())
    return [Reason("separate-groups", annotators=annotators, numbers=numbers)]


def _separate_classes(found: Measurements) -> list[Reason]:
    if found.overlap.is_comparable:
        return []
    side = found.overlap.side
    classes, others = (tuple(np.flatnonzero(part).tolist()) for part in (side, ~side))
    numbers = {"separation": found.overlap.separation}
    return [Reason("separate-classes", classes, others, numbers=numbers)]


def _rarely_reported(found: Measurements) -> list[Reason]:
    n_reports, n_labels = found.table.labels_per_class(), found.class_labels
    never = tuple(np.flatnonzero(n_reports == 0).tolist())
    few = tuple(np.flatnonzero((n_reports > 0) & (n_labels < MIN_LABELS)).tolist())
    reasons = [Reason("never-reported", never)] if never else []
    return [*reasons, Reason("few-labels", few)] if few else reasons


def _small_margins(found: Measurements) -> list[Reason]:
    enough = (found.class_labels >= MIN_LABELS) & (found.table.labels_per_class() > 0)
    small = np.flatnonzero((found.margins.low <= MIN_MARGIN) & enough)
    worst_first = small[np.argsort(found.margins.low[small], kind="stable")]
    return [_small_margin(found, int(k)) for k in worst_first]


def _small_margin(found: Measurements, k: int) -> Reason:
    value, low, high = (float(part[k]) for part in found.margins)
    numbers = {"margin": value, "low": low, "high": high}
    if value > MIN_MARGIN:
        lacking = ((value - low) / (value - MIN_MARGIN)) ** 2 - 1
        numbers["labels_needed"] = float(found.class_labels[k] * lacking)
    return Reason("small-margin", (k,), (int(found.rivals[k]),), found.best_at[k], numbers)


def _indistinct(found: Measurements) -> list[Reason]:
    reasons = []
    for pair, gain, claimed in found.pairs:
        if gain.low < MIN_GAIN:
            reasons.append(Reason("indistinct", pair, numbers=gain._asdict()))
        elif gain.value < MIN_KEPT * claimed and gain.high < claimed:
            reasons.append(Reason("overstated", pair, numbers={"kept": gain.value / claimed}))
    return reasons


def _divided(found: Measurements) -> list[Reason]:
    return [Reason("divided")] if found.is_divided else []


def _shared_errors(found: Measurements) -> list[Reason]:
    dependence = found.dependence
    if dependence.correlation <= max(MAX_CORRELATION, dependence.error):
        return []
    numbers = {
        "votes": dependence.n_votes,
        "effective": dependence.effective_votes,
        "unknown": found.accuracy_bar,
    }
    return [Reason("shared-errors", numbers=numbers)]


def _unknown_annotators(found: Measurements) -> list[Reason]:
    if found.estimation_loss <= MAX_LOSS:
        return []
    return [Reason("unknown-annotators", numbers={"loss": found.estimation_loss})]


def _two_labels(found: Measurements) -> list[Reason]:
    if found.has_classifier or found.share_of_three >= MIN_COMPARED_THREE:
        return []
    return [Reason("two-labels", numbers={"share": found.share_of_three})]
