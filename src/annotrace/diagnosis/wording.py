"""The words for flags and reasons: the only place where they become text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from annotrace.crowd.error_groups import ErrorGroup
from annotrace.diagnosis.flags import FEW_LABELS_PER_CLASS, Flag, FlagKind
from annotrace.diagnosis.reasons import MIN_LABELS, Reason
from annotrace.labels.table import LabelTable

MAX_NAMES, MAX_PAIRS = 5, 3

SUMMARIES: dict[FlagKind, str] = {
    "spammer": "Answer independently of the item (likely spammers; leave their labels out)",
    "adversarial": "Correct less often than by chance (ask how they understood the task)",
    "confuses": "Systematically confuse one class with another",
    "few-labels": f"Few labels, fewer than {FEW_LABELS_PER_CLASS} per class",
    "no-labels": "No labels, assumed to be like the average annotator",
}


def describe_flags(flags: Sequence[Flag], table: LabelTable) -> str:
    """Return the flags of one annotator in words, empty if there are none.

    >>> table = LabelTable.from_codes([0], [0], [0], n_classes=9)
    >>> pairs = [(3, 1), (8, 3), (6, 7), (0, 1), (1, 0), (2, 4)]
    >>> describe_flags([Flag("confuses", pair) for pair in pairs], table)
    'confuses 3 with 1, 8 with 3 and 6 with 7, and 2 more pairs'
    >>> describe_flags([Flag("spammer"), Flag("few-labels")], table)
    'likely spammer: answers independently of the item; few labels'
    """
    plain = {
        "spammer": "likely spammer: answers independently of the item",
        "adversarial": "adversarial: correct less often than by chance",
        "few-labels": "few labels",
        "no-labels": "no labels",
    }
    pairs = [flag.classes for flag in flags if flag.kind == "confuses"]
    before = [plain[flag.kind] for flag in flags if flag.kind in ("spammer", "adversarial")]
    after = [plain[flag.kind] for flag in flags if flag.kind in ("few-labels", "no-labels")]
    confused = [f"confuses {_confusions(pairs, table)}"] if pairs else []
    return "; ".join([*before, *confused, *after])


def _confusions(pairs: Sequence[tuple[int, ...]], table: LabelTable) -> str:
    """List pairs of (true, reported), those that go both ways once."""
    names = table.classes
    errors = []
    for true, reported in pairs:
        if (reported, true) not in pairs:
            errors.append(f"{names[true]} with {names[reported]}")
        elif true < reported:
            errors.append(f"{names[true]} with {names[reported]} (both ways)")
    shown, more = errors[:MAX_PAIRS], len(errors) - MAX_PAIRS
    return join(shown) + (f", and {more} more pair{'s' * (more > 1)}" if more > 0 else "")


def summarize_flags(flags: Iterable[Sequence[Flag]], table: LabelTable) -> list[str]:
    """Return one line for each kind of flag, with the annotators who have it."""
    members: dict[tuple[Flag, ...], list[int]] = defaultdict(list)
    for annotator, own in enumerate(flags):
        members[tuple(own)].append(annotator)
    lines = []
    for kind, text in SUMMARIES.items():
        with_kind = (who for own, who in members.items() if any(flag.kind == kind for flag in own))
        if who := sorted(chain.from_iterable(with_kind)):
            lines.append(f"{text}: {list_names(table.annotators[who].tolist())}.")
    return lines


def list_names(names: Sequence[Any], max_names: int = MAX_NAMES) -> str:
    """Return names as a list, quoted if they are text.

    >>> list_names(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    shown = [repr(name) if isinstance(name, str) else str(name) for name in names[:max_names]]
    if len(names) > max_names:
        return f"{', '.join(shown)} and {len(names) - max_names} more"
    return join(shown)


def join(texts: Sequence[str]) -> str:
    """Join texts with commas and a final "and".

    >>> join(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def describe_reason(reason: Reason, table: LabelTable) -> tuple[str, str]:
    """Return what is wrong and what would help, in words."""
    return _DESCRIPTIONS[reason.kind](reason, table)


def _class_names(classes: Sequence[int], table: LabelTable) -> str:
    return list_names(table.classes[list(classes)].tolist())


def _nothing_compared(reason: Reason, table: LabelTable) -> tuple[str, str]:
    return (
        "No item has two labels, so annotators cannot be compared.",
        "Collect a second label for some items, provide gold items, or fit a classifier on "
        "features.",
    )


def _no_information(reason: Reason, table: LabelTable) -> tuple[str, str]:
    return (
        "Labels do not depend on the items more than by chance: annotators answer independently of "
        "the item, or there are too few labels to see otherwise.",
        "Check on a few gold items that annotators understand the task, then collect new labels "
        "from those who do.",
    )


def _permuted(reason: Reason, table: LabelTable) -> tuple[str, str]:
    names = table.classes
    pairs = list(zip(reason.classes, reason.others, strict=True))
    swaps = [f"{names[k]!s} is mostly called {names[name]!s}" for k, name in pairs[:MAX_NAMES]]
    return (
        f"The names of classes are permuted: {', '.join(swaps)}.",
        "Fit again with another `random_state`, or collect more labels per item. If it stays "
        "permuted, annotators swap the names themselves, and only gold items can show that.",
    )


def _separate_groups(reason: Reason, table: LabelTable) -> tuple[str, str]:
    outside = list_names(table.annotators[list(reason.annotators)].tolist())
    return (
        f"Annotators fall into {int(reason.numbers['groups']):,} groups that share no item, so "
        "that nothing compares one group with another.",
        f"Have some of the same items labelled by {outside} and by the others.",
    )


def _separate_classes(reason: Reason, table: LabelTable) -> tuple[str, str]:
    one, other = _class_names(reason.classes, table), _class_names(reason.others, table)
    return (
        f"Annotators who label items of {one} hardly ever label items of {other}, so it is unknown "
        "whether they would confuse them.",
        "Give each annotator items of all classes, in random order.",
    )


def _never_reported(reason: Reason, table: LabelTable) -> tuple[str, str]:
    names = _class_names(reason.classes, table)
    return (
        f"No label reports {names}.",
        f"Remove {names} from the classes, or have items labelled that belong there.",
    )


def _few_labels(reason: Reason, table: LabelTable) -> tuple[str, str]:
    names = _class_names(reason.classes, table)
    return (
        f"There are fewer than {MIN_LABELS} labels for items of {names}.",
        f"Collect labels for items that are probably {names}.",
    )


def _small_margin(reason: Reason, table: LabelTable) -> tuple[str, str]:
    name, rival = table.classes[reason.classes[0]], table.classes[reason.others[0]]
    numbers = reason.numbers
    often = "nearly as often as" if numbers["margin"] > 0 else "at least as often as"
    text = (
        f"Items of class {rival} are labelled {name} {often} items of class {name} are: margin "
        f"{numbers['margin']:.2f} ({numbers['low']:.2f} to {numbers['high']:.2f})."
    )
    if "labels_needed" not in numbers:
        return text, f"Explain to annotators how {name} differs from {rival}, with gold examples."
    best = list_names(table.annotators[list(reason.annotators)].tolist())
    by = f", preferably from annotators who know the class: {best}" if best else ""
    needed = _round_up(numbers["labels_needed"])
    return text, f"Collect about {needed} more labels for items that are probably {name}{by}."


def _round_up(number: float) -> str:
    """Round up to one significant digit, at least 10."""
    number = max(number, 10.0)
    unit = 10 ** int(np.log10(number))
    return f"{int(np.ceil(number / unit) * unit):,}"


def _indistinct(reason: Reason, table: LabelTable) -> tuple[str, str]:
    one, other = table.classes[list(reason.classes)].tolist()
    return (
        f"Labels do not distinguish {one} from {other}: separating them predicts other labels no "
        "better than merging them.",
        _merge_advice(reason, table),
    )


def _overstated(reason: Reason, table: LabelTable) -> tuple[str, str]:
    one, other = table.classes[list(reason.classes)].tolist()
    return (
        f"Labels distinguish {one} from {other} less well than the confusion matrices say: "
        f"separating them gains {reason.numbers['kept']:.0%} of the expected likelihood on other "
        "labels.",
        _merge_advice(reason, table),
    )


def _merge_advice(reason: Reason, table: LabelTable) -> str:
    one, other = table.classes[list(reason.classes)].tolist()
    return f"Explain how {one} differs from {other}, collect labels of both, or merge them."


def _shared_errors(reason: Reason, table: LabelTable) -> tuple[str, str]:
    votes, effective, unknown = (reason.numbers[k] for k in ("votes", "effective", "unknown"))
    is_panel = votes > 0.9 * table.n_annotators
    what = f"{table.n_annotators:,} annotators" if is_panel else f"{votes:.0f} labels of an item"
    return (
        f"Annotators share errors: {what} count as about {effective:.1f}. Without gold items "
        f"accuracy cannot be known to better than {100 * unknown:.0f} points up or down.",
        "Provide gold items, to learn from: labels of annotators who err together do not show "
        "their errors.",
    )


def describe_groups(groups: Sequence[ErrorGroup], table: LabelTable) -> list[str]:
    """Return one line for each group of annotators who err together."""
    return [
        f"{list_names(table.annotators[list(group.annotators)].tolist())} err together: "
        f"{len(group.annotators)} annotators count as about {group.effective_votes:.1f}."
        for group in groups
    ]


def _unknown_annotators(reason: Reason, table: LabelTable) -> tuple[str, str]:
    return (
        "Annotators are not known well enough: knowing their confusion matrices would raise "
        f"accuracy by about {100 * reason.numbers['loss']:.0f} points or more.",
        "Collect more labels from the same annotators, or provide gold items.",
    )


def _two_labels(reason: Reason, table: LabelTable) -> tuple[str, str]:
    return (
        f"Only {reason.numbers['share']:.0%} of the labels are on items with three labels or more: "
        "where two annotators disagree, a third must show who is right.",
        "Collect a third label for some items, provide gold items, or fit a classifier on "
        "features.",
    )


_DESCRIPTIONS: dict[str, Callable[[Reason, LabelTable], tuple[str, str]]] = {
    "nothing-compared": _nothing_compared,
    "no-information": _no_information,
    "permuted": _permuted,
    "separate-groups": _separate_groups,
    "separate-classes": _separate_classes,
    "never-reported": _never_reported,
    "few-labels": _few_labels,
    "small-margin": _small_margin,
    "indistinct": _indistinct,
    "overstated": _overstated,
    "shared-errors": _shared_errors,
    "unknown-annotators": _unknown_annotators,
    "two-labels": _two_labels,
}
