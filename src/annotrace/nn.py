"""Layers, losses, networks and optimisers for your own training loop."""

from annotrace.models import (
    Confusion,
    FixedConfusion,
    crowd_nll,
    label_log_likelihood,
    posterior,
    trace_regularized_nll,
)
from annotrace.networks import (
    BACKBONES,
    Ensemble,
    ImageInput,
    Standardize,
    build_backbone,
    cnn4,
    mlp,
    resnet9,
    resnet50,
)
from annotrace.training import RowAdam, parameter_groups

__all__ = [
    "BACKBONES",
    "Confusion",
    "Ensemble",
    "FixedConfusion",
    "ImageInput",
    "RowAdam",
    "Standardize",
    "build_backbone",
    "cnn4",
    "crowd_nll",
    "label_log_likelihood",
    "mlp",
    "parameter_groups",
    "posterior",
    "resnet9",
    "resnet50",
    "trace_regularized_nll",
]
