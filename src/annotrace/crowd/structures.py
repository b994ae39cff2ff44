"""Structures of annotator models that learn by gradient descent, by name.

Each is called with `n_annotators`, `n_classes`, `n_items` and the keywords of `Confusion`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.confusion import Confusion
from annotrace.crowd.factored_confusion import (
    FactoredConfusion,
    LowRankConfusion,
    PerClassConfusion,
)
from annotrace.crowd.sparse_confusion import Parametrization
from annotrace.crowd.taxonomy_confusion import TaxonomyConfusion
from annotrace.registry import Entry, Registry


def _confusion(n_annotators: int, n_classes: int, *, n_items: int = 0, **options: Any) -> Confusion:
    """Return confusion matrices that are the same for all items."""
    return Confusion(n_annotators, n_classes, **options)


def _factored(
    layer: Callable[..., FactoredConfusion],
    n_annotators: int,
    n_classes: int,
    *,
    n_items: int = 0,
    sparse: bool = True,
    parametrization: Parametrization = "softplus",
    **options: Any,
) -> FactoredConfusion:
    """Return a layer that has one parametrization, is sparse, and is the same for all items."""
    return layer(n_annotators, n_classes, **options)


STRUCTURES: Registry[AnnotatorModel] = Registry(
    "structure",
    Entry("full", _confusion, "one confusion matrix per annotator"),
    Entry("pooled", partial(_confusion, pooled=True), "a shared matrix plus a deviation for each"),
    Entry(
        "low-rank",
        partial(_factored, LowRankConfusion),
        "shared skills and errors, a deviation of rank k for each",
    ),
    Entry(
        "per-class",
        partial(_factored, PerClassConfusion),
        "one skill per class for each, shared errors",
    ),
    Entry(
        "taxonomy",
        partial(_factored, TaxonomyConfusion),
        "confusion within groups of classes; needs `group`",
    ),
)
