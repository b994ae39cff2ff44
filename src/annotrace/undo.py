"""A fit that raises or is interrupted leaves the model in its previous state."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def unchanged_unless_done(model: Any) -> Iterator[None]:
    """Restore the attributes of a model if the block raises."""
    before = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


@contextmanager
def weights_unchanged_unless_done(modules: Collection[nn.Module]) -> Iterator[None]:
    """Restore the weights of modules if the block raises."""
    before = [deepcopy(module.state_dict()) for module in modules]
    try:
        yield
    except BaseException:
        for module, weights in zip(modules, before, strict=True):
            module.load_state_dict(weights)
            module.eval()
        raise
