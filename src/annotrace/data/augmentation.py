"""Random changes of images that keep their class: shifts, and mirror images.

They are drawn for every batch of a training, on the device of the images, and never when classes
are predicted. All operations have fixed shapes and draw from a generator on the device, so that a
CUDA graph can record them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from annotrace.errors import InputError

Augmentation: TypeAlias = Callable[[Tensor, torch.Generator | None], Tensor]
"""From images in their stored type and layout, and a generator, to images of the same shape."""

OwnFunction: TypeAlias = Callable[[Tensor], Tensor]
"""From images as float32 of shape (n, channels, height, width) to images of the same shape."""

Kind: TypeAlias = Literal["none", "crop", "crop+flip"]
KINDS: tuple[Kind, ...] = ("none", "crop", "crop+flip")
"""From the weakest to the strongest."""

SHIFT = 1 / 8
"""The largest shift, as a share of the height and of the width: 4 of 32 pixels."""


class Layout(NamedTuple):
    """Which dimensions of stored images are which.

    Attributes
    ----------
    n_channels : int
    channels_last : bool
        (n, height, width, channels) or (n, height, width); otherwise (n, channels, height, width).
    """

    n_channels: int
    channels_last: bool


def image_layout(shape: tuple[int, ...]) -> Layout:
    """Recognise the layout of images by the shape of one.

    Parameters
    ----------
    shape : tuple of int
        (height, width), (height, width, channels) or (channels, height, width), with 1 or 3
        channels.
    """
    if len(shape) == 2:
        return Layout(1, channels_last=True)
    if len(shape) == 3 and (shape[-1] in (1, 3) or shape[0] in (1, 3)):
        channels_last = shape[-1] in (1, 3)
        return Layout(shape[-1] if channels_last else shape[0], channels_last)
    raise InputError(
        "Expected images of shape (height, width), (height, width, channels) or "
        f"(channels, height, width) with 1 or 3 channels, but got {shape}."
    )


def make_augmentation(kind: Kind | OwnFunction, shape: tuple[int, ...]) -> Augmentation | None:
    """Return the augmentation of a kind, None for "none".

    Parameters
    ----------
    kind : {"none", "crop", "crop+flip"} or callable
        "crop" shifts each image by up to an eighth of its size, "crop+flip" also mirrors half of
        them, left to right. A function of your own gets float32 of shape (n, channels, height,
        width), uint8 scaled to 0 to 1, and returns the same shape.
    shape : tuple of int
        Of one image.
    """
    if kind == "none":
        return None
    layout = image_layout(shape)
    if callable(kind):
        return _own_augmentation(kind, layout)
    flips = kind == "crop+flip"
    return lambda images, generator: _shift(images, layout, generator, flips=flips)


def mirror(images: Tensor) -> Tensor:
    """Mirror stored images, (n, ...), left to right."""
    layout = image_layout(tuple(images.shape[1:]))
    return images.flip(2 if layout.channels_last else 3)


def _shift(
    images: Tensor, layout: Layout, generator: torch.Generator | None, *, flips: bool
) -> Tensor:
    """Shift each image at random; what enters at a border is the mirror image of what is inside."""
    height, width = images.shape[1:3] if layout.channels_last else images.shape[2:4]
    n, device = len(images), images.device
    row = _shifted(height, n, generator, device)
    column = _shifted(width, n, generator, device)
    if flips:
        mirrored = torch.rand((n, 1), generator=generator, device=device) < 0.5
        column = torch.where(mirrored, width - 1 - column, column)
    which = torch.arange(n, device=device)[:, None, None]
    if layout.channels_last:
        return images[which, row[:, :, None], column[:, None, :]]
    channel = torch.arange(images.shape[1], device=device)[:, None, None]
    return images[which[..., None], channel, row[:, None, :, None], column[:, None, None, :]]


def _shifted(size: int, n: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Return which pixel each pixel of a dimension is taken from, shape (n, size)."""
    most = min(max(1, round(SHIFT * size)), size - 1)
    shift = torch.randint(-most, most + 1, (n, 1), generator=generator, device=device)
    place = (torch.arange(size, device=device) + shift).abs()
    return (size - 1) - (size - 1 - place).abs()


def _own_augmentation(function: OwnFunction, layout: Layout) -> Augmentation:
    def augment(images: Tensor, _: torch.Generator | None) -> Tensor:
        rows = as_channels_first(images, layout)
        changed = function(rows)
        if changed.shape != rows.shape:
            raise InputError(
                f"Expected `augment` to return images of shape {tuple(rows.shape)}, but got "
                f"{tuple(changed.shape)}."
            )
        return (changed.permute(0, 2, 3, 1) if layout.channels_last else changed).reshape(
            images.shape
        )

    return augment


def as_channels_first(images: Tensor, layout: Layout) -> Tensor:
    """Return stored images as float32 of shape (n, channels, height, width), uint8 as 0 to 1."""
    x = images.float() / 255 if images.dtype == torch.uint8 else images.float()
    if x.dim() == 3:
        x = x.unsqueeze(-1)
    return x.permute(0, 3, 1, 2) if layout.channels_last else x
