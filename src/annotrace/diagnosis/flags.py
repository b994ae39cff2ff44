"""What there is to say of single annotators: spammers, adversaries, mix-ups, copies, few labels.

A flag is raised where the interval says so, not the estimate: people with few labels are not
accused of anything but of having few labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.beta_quantiles import beta_interval
from annotrace.diagnosis.copies import Copies
from annotrace.diagnosis.identifiability import Overlap
from annotrace.diagnosis.uncertainty import CrowdPosterior
from annotrace.labels.table import LabelTable

# Fewer labels a class than this leave a row of the matrix open, and a skill by .1 to .2 either way
# where classes are two or three. Of a hundred classes, 300 labels leave it .04.
FEW_LABELS_A_CLASS = 4
# Answers are guesses if they are surely within .3 of being right as often as if given blindly, and
# not surely .1 oftener; who is surely informed by .3 swaps names. See docs/trust.md.
GUESSING, HARDLY = 0.3, 0.1
# One in four taken for the same other class is a habit, not a slip.
MIX_UP = 0.25
SPAMMER = "spammer: answers do not depend on the item"
ADVERSARIAL = "adversarial: right less often than by chance"
_NAMED = 3


def flag_annotators(
    crowd: CrowdPosterior, copies: Copies, overlap: Overlap, table: LabelTable
) -> tuple[tuple[str, ...], ...]:
    """Give the flags of each annotator in words.

    Parameters
    ----------
    crowd : CrowdPosterior
    copies : Copies
    overlap : Overlap
        Where people see different classes, nobody is judged by their answers: who sees one class,
        and names it, is like one who always names it.
    table : LabelTable
        Whose names annotators and classes are called by.
    """
    n_labels = table.labels_per_annotator()
    faults = {} if overlap.apart else _faults(crowd, table.classes.tolist())
    copiers = _copiers(copies, table.annotators.tolist())
    few = n_labels < FEW_LABELS_A_CLASS * table.n_classes
    flags = [[*faults.get(who, ()), *copiers.get(who, ())] for who in range(len(n_labels))]
    for who in np.flatnonzero(few):
        flags[who].append("few labels" if n_labels[who] else "no labels")
    return tuple(map(tuple, flags))


def _faults(crowd: CrowdPosterior, classes: Sequence[Any]) -> dict[int, list[str]]:
    """Tell what is wrong with the answers of annotators, by code."""
    adversarial = (crowd.skills()[1] < 1 / len(classes)) & (crowd.informedness()[1] >= GUESSING)
    spammer = _guessing(crowd) & ~adversarial
    mistaken = _mix_ups(crowd, ~spammer, classes)
    said = {int(who): [SPAMMER] for who in np.flatnonzero(spammer)}
    said |= {int(who): [ADVERSARIAL] for who in np.flatnonzero(adversarial)}
    for who, mixed in mistaken.items():
        said.setdefault(who, []).extend(mixed)
    return said


def _guessing(crowd: CrowdPosterior) -> NDArray[np.bool_]:
    """Tell whose answers do not depend on the item, (n_annotators,)."""
    low, high = crowd.advantage()
    blind = (low > -GUESSING) & (low < HARDLY) & (high < GUESSING)
    guessing: NDArray[np.bool_] = blind & (crowd.informedness()[0] < GUESSING)
    return guessing


def _mix_ups(
    crowd: CrowdPosterior, judged: NDArray[np.bool_], classes: Sequence[Any]
) -> dict[int, list[str]]:
    """Tell who surely takes one class for another, the commonest first."""
    mean, variance = crowd.moments.cell_mean, crowd.moments.cell_variance
    wrong = ~np.eye(len(classes), dtype=bool)
    # Quantiles cost: they are taken only where the mean is high enough.
    cells = np.nonzero((mean > MIX_UP) & wrong & judged[:, None, None])
    low = beta_interval(mean[cells], variance[cells], 0.9)[0]
    mistaken: dict[int, list[tuple[int, int]]] = {}
    for place in np.argsort(-low, kind="stable"):
        if low[place] > MIX_UP:
            who, true, said = (int(codes[place]) for codes in cells)
            mistaken.setdefault(who, []).append((true, said))
    return {who: _in_words(pairs, classes) for who, pairs in mistaken.items()}


def _copiers(copies: Copies, annotators: Sequence[Any]) -> dict[int, list[str]]:
    """Tell who answers like whom, the most alike first."""
    like: dict[int, list[Any]] = {}
    for place in np.argsort(-copies.share, kind="stable"):
        one, other = int(copies.first[place]), int(copies.second[place])
        like.setdefault(one, []).append(annotators[other])
        like.setdefault(other, []).append(annotators[one])
    return {
        who: [f"copies: answers like {_first(names)}, even against all others"]
        for who, names in like.items()
    }


def _in_words(pairs: list[tuple[int, int]], classes: Sequence[Any]) -> list[str]:
    """Tell of pairs (true, reported) which go both ways, and which one way only."""
    both = [(a, b) for a, b in pairs if a < b and (b, a) in pairs]
    one_way = [(a, b) for a, b in pairs if (b, a) not in pairs]
    mixed = [f"mixes up {classes[a]} and {classes[b]}" for a, b in both]
    taken = [f"takes {classes[a]} for {classes[b]}" for a, b in one_way]
    return [_first(said) for said in (mixed, taken) if said]


def _first(said: list[Any]) -> str:
    more = len(said) - _NAMED
    return ", ".join(map(str, said[:_NAMED])) + (f" and {more} more such" if more > 0 else "")
