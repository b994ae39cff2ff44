"""Every method by its short name."""

from __future__ import annotations

from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.vanilla import Vanilla

METHODS: dict[str, type[CrowdEstimator]] = {
    estimator.method: estimator for estimator in (TraceRegularized, Vanilla)
}


def estimator_class(name: str) -> type[CrowdEstimator]:
    """Give the class of a method by its short name."""
    if name not in METHODS:
        raise InputError(f"There is no method {name!r}; there are {', '.join(METHODS)}.")
    return METHODS[name]
