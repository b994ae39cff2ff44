"""Truth from labels alone: one file per method."""

from annotrace.aggregation.base import Aggregation, IterativeAggregation
from annotrace.aggregation.dawid_skene import DawidSkene
from annotrace.aggregation.ensemble import Ensemble
from annotrace.aggregation.glad import GLAD
from annotrace.aggregation.hierarchical import Hierarchical
from annotrace.aggregation.mace import MACE
from annotrace.aggregation.majority_vote import MajorityVote
from annotrace.aggregation.pooled import PooledDawidSkene
from annotrace.aggregation.registry import AGGREGATIONS, DEFAULT, list_aggregations, make
from annotrace.aggregation.wawa import Wawa
from annotrace.aggregation.weighted_vote import IterativeWeightedVote

__all__ = [
    "AGGREGATIONS",
    "DEFAULT",
    "GLAD",
    "MACE",
    "Aggregation",
    "DawidSkene",
    "Ensemble",
    "Hierarchical",
    "IterativeAggregation",
    "IterativeWeightedVote",
    "MajorityVote",
    "PooledDawidSkene",
    "Wawa",
    "list_aggregations",
    "make",
]
