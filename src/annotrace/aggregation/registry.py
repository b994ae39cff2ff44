"""Every aggregation by its short name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.dawid_skene import DawidSkene
from annotrace.aggregation.glad import GLAD
from annotrace.aggregation.hierarchical import Hierarchical
from annotrace.aggregation.mace import MACE
from annotrace.aggregation.majority_vote import MajorityVote
from annotrace.aggregation.pooled import PooledDawidSkene
from annotrace.aggregation.wawa import Wawa
from annotrace.aggregation.weighted_vote import IterativeWeightedVote
from annotrace.errors import InputError

# Best mean accuracy and best mean rank of all on 11 real crowds: docs/aggregation.md.
DEFAULT = "hierarchical"


@dataclass(frozen=True)
class Entry:
    """What there is to know about an aggregation before using it."""

    name: str
    paper: str
    year: int
    summary: str
    maker: Callable[..., Aggregation]


_ENTRIES = (
    Entry(
        "hierarchical",
        "annotrace",
        2026,
        "own skill, the pool's errors, items clear or doubtful; strengths learned (the default)",
        Hierarchical,
    ),
    Entry("majority", "folklore", 1785, "the class most often reported", MajorityVote),
    Entry("dawid-skene", "Dawid & Skene", 1979, "a confusion matrix an annotator", DawidSkene),
    Entry(
        "one-coin",
        "Dawid & Skene, one parameter",
        1979,
        "one probability of being right an annotator",
        partial(DawidSkene, one_coin=True),
    ),
    Entry(
        "pooled",
        "Kim & Ghahramani, prior learned",
        2012,
        "confusion matrices drawn towards the pool, as far as the data say",
        PooledDawidSkene,
    ),
    Entry("glad", "Whitehill et al.", 2009, "able annotators, easy items", GLAD),
    Entry("mace", "Hovy et al.", 2013, "annotators know or guess", MACE),
    Entry("wawa", "CrowdFlower", 2012, "one vote, then one weighted by agreement", Wawa),
    Entry(
        "weighted-vote",
        "Li & Yu",
        2014,
        "votes weighted by agreement, until nothing changes",
        IterativeWeightedVote,
    ),
)


def make(name: str = DEFAULT, **settings: Any) -> Aggregation:
    """Make an aggregation by its short name.

    Parameters
    ----------
    name : str
        One of those that `list_aggregations` tells.
    **settings
        Handed to the class.

    Examples
    --------
    >>> make("one-coin", max_iter=50).max_iter
    50
    """
    for entry in _ENTRIES:
        if entry.name == name:
            return entry.maker(**settings)
    known = ", ".join(entry.name for entry in _ENTRIES)
    raise InputError(f"There is no aggregation {name!r}; there are {known}.")


def name_of(aggregation: Aggregation) -> str:
    """Give the short name of an aggregation, or of its class if it has none.

    Where two names make the same class, the one whose settings are nearer.

    Examples
    --------
    >>> name_of(DawidSkene(one_coin=True, max_iter=50))
    'one-coin'
    """
    given = aggregation.settings.items()
    made = {entry.name: entry.maker() for entry in _ENTRIES}
    others = {
        name: len(one.settings.items() - given)
        for name, one in made.items()
        if type(one) is type(aggregation)
    }
    return min(others, key=others.__getitem__, default=type(aggregation).__name__)


def list_aggregations() -> list[Entry]:
    """Tell every aggregation: name, paper, year and one line; the default first."""
    return list(_ENTRIES)
