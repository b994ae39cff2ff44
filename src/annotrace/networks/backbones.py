"""Backbones by name, each with its input stages."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from annotrace.errors import InputError
from annotrace.networks.architectures import cnn4, mlp, resnet9, resnet50
from annotrace.networks.bags import Bags
from annotrace.networks.inputs import ImageInput, Scaling, fit_standardize
from annotrace.networks.text import fit_text_layer

Backbone: TypeAlias = str | nn.Module

_IMAGE_NETWORKS: dict[str, Callable[[int, int], nn.Module]] = {
    "cnn": cnn4,
    "cnn-wide": partial(cnn4, widths=(128, 128, 128, 128)),
    "resnet9": resnet9,
    "resnet50": resnet50,
}
BACKBONES = ("linear", "mlp", *_IMAGE_NETWORKS)
WIDTH = 128
_TEXT_WIDTH, _TEXT_STD = 32, 0.5
_MIN_SIDE = {"cnn": 4, "cnn-wide": 4, "resnet9": 8, "resnet50": 1}
"""Minimum height and width of images: pooling reduces them to one pixel."""


def build_backbone(
    backbone: Backbone,
    sample: Tensor | Bags,
    n_classes: int,
    *,
    scaling: Scaling = "feature",
    width: int = WIDTH,
    batch_norm: bool = False,
) -> nn.Module:
    """Return a network that maps stored rows to logits.

    Parameters
    ----------
    backbone : str or nn.Module
        One of `BACKBONES`; "auto" for "mlp" on features, "cnn" on images and "linear" on texts; or
        your own module, which is copied. Its inputs are float32 and not standardised (images:
        channels first, uint8 scaled to 0 to 1).
    sample : Tensor of shape (n, ...), or Bags
        Stored rows, from which mean and standard deviation are estimated, or texts, whose n-grams
        are used. If it is on the meta device, your own module is not tried on it.
    n_classes : int
    scaling : {"feature", "common"}
        How "mlp" and "linear" scale features; see `fit_standardize`.
    width : int
        Of the hidden layer of "mlp" on features.
    batch_norm : bool
        Whether that layer has batch normalisation.

    Returns
    -------
    nn.Module
        Maps rows (n, ...) in the stored type to logits (n, n_classes).
    """
    if isinstance(sample, Bags):
        return _text_network(backbone, sample, n_classes)
    is_images = sample.dim() > 2
    if isinstance(backbone, nn.Module):
        network = copy.deepcopy(backbone)
        checked = nn.Sequential(_input_stage(sample), network)
        if not sample.is_meta:
            _check_logits(checked, sample, n_classes)
        return checked
    name = ("cnn" if is_images else "mlp") if backbone == "auto" else backbone
    if name in _IMAGE_NETWORKS:
        stage = _image_stage(sample, name)
        images = stage(sample)
        _check_size(images, name)
        standardize = fit_standardize(images)
        network = _IMAGE_NETWORKS[name](stage.channels, n_classes)
        # The fastest layout for convolutions, on a CPU too.
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return nn.Sequential(stage, standardize, network)
    if name in ("linear", "mlp"):
        rows = sample.flatten(1)
        hidden = () if name == "linear" else (width,)
        network = mlp(rows.shape[1], n_classes, hidden, batch_norm=batch_norm)
        return nn.Sequential(nn.Flatten(), fit_standardize(rows, scaling), network)
    raise InputError(
        f"Expected `backbone` to be a torch module, 'auto' or one of {', '.join(BACKBONES)}, "
        f"but got {backbone!r}."
    )


def _text_network(backbone: Backbone, sample: Bags, n_classes: int) -> nn.Module:
    """Return a network on texts, whose first child is linear, so that its output can be mixed."""
    if backbone in ("auto", "linear"):
        return nn.Sequential(fit_text_layer(sample, n_classes), nn.Sequential())
    if backbone == "mlp":
        layer = fit_text_layer(sample, _TEXT_WIDTH, _TEXT_STD)
        return nn.Sequential(layer, nn.Sequential(nn.ReLU(), nn.Linear(_TEXT_WIDTH, n_classes)))
    raise InputError(
        f"Expected `backbone` for texts to be 'auto', 'linear' or 'mlp', but got {backbone!r}. For "
        "another network, encode the texts first: `annotrace.data.encode`, or --encoder."
    )


class _ToFloat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float()


def _input_stage(sample: Tensor) -> nn.Module:
    return ImageInput(tuple(sample.shape[1:])) if sample.dim() > 2 else _ToFloat()


def _image_stage(sample: Tensor, name: str) -> ImageInput:
    if sample.dim() < 3:
        raise InputError(
            f"The backbone {name!r} takes images, but the data are rows of {sample.shape[1]} "
            "features. Use 'mlp', or pass images of shape (n, height, width[, channels])."
        )
    return ImageInput(tuple(sample.shape[1:]))


def _check_size(images: Tensor, name: str) -> None:
    height, width = images.shape[-2:]
    min_side = _MIN_SIDE[name]
    if min(height, width) < min_side:
        raise InputError(
            f"The backbone {name!r} needs images of {min_side} x {min_side} pixels or more, "
            f"but these have {height} x {width}. Use 'mlp'."
        )


@torch.no_grad()
def _check_logits(network: nn.Module, sample: Tensor, n_classes: int) -> None:
    was_training = network.training
    logits = network.eval()(sample[:2])
    network.train(was_training)
    if next(network.parameters(), None) is None:
        raise InputError("Expected the backbone to have trainable weights, but it has none.")
    if not isinstance(logits, Tensor):
        raise InputError(
            f"Expected the backbone to return logits, but it returned a {type(logits).__name__}."
        )
    shape = tuple(logits.shape)
    if shape != (len(sample[:2]), n_classes):
        raise InputError(
            f"Expected the backbone to return logits of shape (rows, {n_classes}), but for "
            f"{len(sample[:2])} rows it returned {shape}."
        )
