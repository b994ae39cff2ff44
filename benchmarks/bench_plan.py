"""What `bench.py` measures: who competes on which crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from aggregation_speed import SIZES, simple_crowd

Sizes = tuple[int, int, int, int]

DAWID_SKENE, DEFAULT, MAJORITY = "dawid-skene", "ensemble", "majority"
OURS = (DAWID_SKENE, DEFAULT, MAJORITY)
REFERENCES = ("scipy.sparse", "numpy")
PEERS = {
    "crowd-kit": (DAWID_SKENE, MAJORITY),
    "peerannot": (DAWID_SKENE, MAJORITY),
    "cleanlab": (MAJORITY,),
    "scikit-activeml": (MAJORITY,),
}
"""What other libraries estimate from labels alone."""

LABELS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 5_000_000)
ANNOTATORS = (100, 1_000, 10_000, 100_000)
CLASSES = (10, 30, 100, 300, 1_000)
PROCESSES = (1, 2)
CURVES = ("labels", "annotators", "classes", "processes")


@dataclass(frozen=True)
class Case:
    """One contender on one crowd of items x annotators x classes x labels per item."""

    part: str
    library: str
    method: str
    sizes: Sizes
    n_processes: int = 1


def plan(part: str, *, labels: Sequence[int] = LABELS, references: bool = False) -> list[Case]:
    """Return the cases of a part, those that are compared next to each other."""
    if part in SIZES:
        listed = [("annotrace", method) for method in OURS]
        listed += [(library, DAWID_SKENE) for library in REFERENCES if references]
        listed += [(library, method) for library, methods in PEERS.items() for method in methods]
        return [Case(part, *contender, SIZES[part]) for contender in listed]
    grown: dict[str, list[tuple[Sizes, int]]] = {
        "labels": [((n // 5, 1_000, 10, 5), 1) for n in labels],
        "annotators": [((200_000, n, 10, 5), 1) for n in ANNOTATORS],
        "classes": [((40_000, 1_000, n, 5), 1) for n in CLASSES],
        "processes": [(SIZES["L"], n) for n in PROCESSES],
    }
    methods = (DAWID_SKENE, DEFAULT)
    return [Case(part, "annotrace", m, *point) for point in grown[part] for m in methods]


def distinct_labels(sizes: Sizes) -> dict[str, np.ndarray]:
    """Simulate a crowd in which nobody labels an item twice: tables of items x annotators differ.

    The labels are therefore a little fewer than items x labels per item.
    """
    made = simple_crowd(*sizes)
    pair = made["item"] * sizes[1] + made["annotator"]
    kept = np.sort(np.unique(pair, return_index=True)[1])
    columns = {name: made[name][kept] for name in ("item", "annotator", "label")}
    return columns | {"truth": made["truth"]}
