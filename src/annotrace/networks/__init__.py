"""Backbones and their input stages."""

from annotrace.networks.architectures import cnn4, mlp, resnet9, resnet50
from annotrace.networks.backbones import BACKBONES, Backbone, build_backbone
from annotrace.networks.bags import Bags
from annotrace.networks.ensemble import Ensemble, max_saved_size
from annotrace.networks.inputs import ImageInput, Standardize

__all__ = [
    "BACKBONES",
    "Backbone",
    "Bags",
    "Ensemble",
    "ImageInput",
    "Standardize",
    "build_backbone",
    "cnn4",
    "max_saved_size",
    "mlp",
    "resnet9",
    "resnet50",
]
