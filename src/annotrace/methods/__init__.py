"""Truth and classifier together: one file a paper."""

from annotrace.methods.base import CrowdEstimator
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.vanilla import Vanilla

__all__ = ["CrowdEstimator", "TraceRegularized", "Vanilla"]
