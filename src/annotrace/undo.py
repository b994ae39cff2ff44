"""A fit that is refused, fails or is interrupted leaves the model as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_unless_done(model: Any) -> Iterator[None]:
    """Give a model the attributes back that it had, where what is done to it does not end."""
    before = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise
