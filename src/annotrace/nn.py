"""Layers, losses, networks and optimisers for your own training loop."""

from annotrace.crowd import (
    AnnotatorModel,
    Confusion,
    FixedMatrices,
    LabelIndex,
    crowd_nll,
    joint_nll,
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
    "AnnotatorModel",
    "Confusion",
    "Ensemble",
    "FixedMatrices",
    "ImageInput",
    "LabelIndex",
    "RowAdam",
    "Standardize",
    "build_backbone",
    "cnn4",
    "crowd_nll",
    "joint_nll",
    "label_log_likelihood",
    "mlp",
    "parameter_groups",
    "posterior",
    "resnet9",
    "resnet50",
    "trace_regularized_nll",
]
