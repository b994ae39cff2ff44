"""What is learned: safe maths, confusion matrices, the loss, backbones (`annotrace.nn`)."""

from annotrace.models.backbones import BACKBONES, build_backbone, parameter_groups
from annotrace.models.cnn import cnn4
from annotrace.models.confusion import Confusion, FixedConfusion
from annotrace.models.crowd_loss import (
    crowd_nll,
    label_log_likelihood,
    posterior,
    trace_regularized_nll,
)
from annotrace.models.ensemble import Ensemble
from annotrace.models.inputs import ImageInput, Standardize
from annotrace.models.mlp import mlp
from annotrace.models.resnet import resnet9, resnet50
from annotrace.models.row_adam import RowAdam

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
