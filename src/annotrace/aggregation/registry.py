"""Every aggregation by its short name."""

from __future__ import annotations

from functools import partial
from typing import Any

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.dawid_skene import DawidSkene
from annotrace.aggregation.ensemble import Ensemble
from annotrace.aggregation.glad import GLAD
from annotrace.aggregation.hierarchical import Hierarchical
from annotrace.aggregation.mace import MACE
from annotrace.aggregation.majority_vote import MajorityVote
from annotrace.aggregation.pooled import PooledDawidSkene
from annotrace.aggregation.wawa import Wawa
from annotrace.aggregation.weighted_vote import IterativeWeightedVote
from annotrace.registry import Entry, Registry

# First in mean accuracy on 15 real crowds, and safe on those it was not made for:
# docs/aggregation.md.
DEFAULT = "ensemble"

AGGREGATIONS: Registry[Aggregation] = Registry(
    "aggregation",
    Entry(
        "ensemble",
        Ensemble,
        "`hierarchical` and `weighted-vote` together, a head count if annotators share errors "
        "(the default)",
        "annotrace",
        2026,
    ),
    Entry(
        "hierarchical",
        Hierarchical,
        "own skill, the pool's errors, items clear or doubtful; strengths learned",
        "annotrace",
        2026,
    ),
    Entry("majority", MajorityVote, "the class most often reported", "folklore", 1785),
    Entry("dawid-skene", DawidSkene, "one confusion matrix per annotator", "Dawid & Skene", 1979),
    Entry(
        "one-coin",
        partial(DawidSkene, one_coin=True),
        "one probability of a correct label per annotator",
        "Dawid & Skene, one parameter",
        1979,
    ),
    Entry(
        "pooled",
        PooledDawidSkene,
        "confusion matrices shrunk towards the pool, as far as the data say",
        "Kim & Ghahramani, prior learned",
        2012,
    ),
    Entry("glad", GLAD, "able annotators, easy items", "Whitehill et al.", 2009),
    Entry("mace", MACE, "annotators know or guess", "Hovy et al.", 2013),
    Entry("wawa", Wawa, "one vote, then one weighted by agreement", "CrowdFlower", 2012),
    Entry(
        "weighted-vote",
        IterativeWeightedVote,
        "votes weighted by agreement, until nothing changes",
        "Li & Yu",
        2014,
    ),
)


def make(name: str = DEFAULT, **params: Any) -> Aggregation:
    """Return an aggregation by its short name.

    Parameters
    ----------
    name : str
        One of `list_aggregations`.
    **params
        Passed to the class.

    Examples
    --------
    >>> make("one-coin", max_iter=50)
    DawidSkene(max_iter=50, one_coin=True)
    """
    return AGGREGATIONS.make(name, **params)


def list_aggregations() -> list[Entry[Aggregation]]:
    """Return every aggregation with its name, paper, year and summary; the default first."""
    return list(AGGREGATIONS.values())
