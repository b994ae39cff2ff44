"""A guard: the last networks are not worse than networks that learned from labels alone.

Iterations learn a posterior that was inferred from the same labels, and nothing forbids that they
confirm an error. So their networks are compared with those candidates that are plain classifiers,
trained once on folds, on majority votes or on what labels alone say. A plain classifier replaces
the last networks if the test by which candidates are chosen (`search.choose`) prefers it, and if
its predictions equal a label of their item more often, by more than a standard error. All
predictions are out of fold, so labels are held out from them.

The likelihood of labels alone would not do: with one label per item, reviews lose .230 per label by
the linear networks of the start, and .242 by those of the iterations, of which .937 and .941 of the
predictions are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from annotrace.labels import LabelTable
from annotrace.methods.fold_networks import Round
from annotrace.methods.search import Tried, choose


class Plain(NamedTuple):
    """A candidate that learned from labels alone.

    Attributes
    ----------
    number : int
        Its position among all candidates.
    tried : Tried
    round : Round
    """

    number: int
    tried: Tried
    round: Round


def plain_candidates(tried: Sequence[tuple[Tried, Round]]) -> list[Plain]:
    """Return the candidates that learned from labels alone, and can be the last networks."""
    return [
        Plain(number, each, found)
        for number, (each, found) in enumerate(tried)
        if each.candidate.learner != "trace" and each.candidate.backbone == "own"
    ]


def better_plain(last: Tried, plain: Sequence[Plain], table: LabelTable) -> Plain | None:
    """Return the plain classifier that is better than the last networks, None if there is none."""
    likely = [each for each in plain if agrees_more(each.tried, last, table)]
    number, _ = choose([last, *(each.tried for each in likely)], table)
    return likely[number - 1] if number else None


def agrees_more(one: Tried, other: Tried, table: LabelTable) -> bool:
    """Whether predictions equal a label of their item more often, by a standard error or more."""
    if table.n_labels == 0:
        return False
    right = [each.proba.argmax(1)[table.item] == table.label for each in (one, other)]
    gain = right[0].astype(float) - right[1]
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))
