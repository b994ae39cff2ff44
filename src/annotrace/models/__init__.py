"""What is learned of annotators: safe maths, confusion matrices, the loss (`annotrace.nn`)."""

from annotrace.models.confusion import Confusion, FixedConfusion
from annotrace.models.crowd_loss import (
    crowd_nll,
    label_log_likelihood,
    posterior,
    trace_regularized_nll,
)

__all__ = [
    "Confusion",
    "FixedConfusion",
    "crowd_nll",
    "label_log_likelihood",
    "posterior",
    "trace_regularized_nll",
]
