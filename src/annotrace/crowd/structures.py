"""Structures of annotator models that learn by gradient descent, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.confusion import Confusion
from annotrace.registry import Entry, Registry

Structure: TypeAlias = Callable[..., AnnotatorModel]
"""Called with `n_annotators`, `n_classes` and the keywords of `Confusion`."""

STRUCTURES: Registry[AnnotatorModel] = Registry(
    "structure",
    Entry("full", Confusion, "one confusion matrix per annotator"),
    Entry("pooled", partial(Confusion, pooled=True), "a shared matrix plus a deviation for each"),
)
