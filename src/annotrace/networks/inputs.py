"""Input stages, from stored arrays to float32, channels first, standardised."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from annotrace.data.augmentation import as_channels_first, image_layout

Scaling: TypeAlias = Literal["feature", "common"]


class ImageInput(nn.Module):
    """Convert stored images to float32 of shape (n, channels, height, width).

    uint8 is scaled to 0 to 1; other types keep their scale.

    Parameters
    ----------
    shape : tuple of int
        Of one image: (height, width), (height, width, channels) or (channels, height, width),
        with 1 or 3 channels.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layout = image_layout(shape)
        self.channels = self.layout.n_channels

    def forward(self, images: Tensor) -> Tensor:
        """Convert a batch."""
        return as_channels_first(images, self.layout)


class Standardize(nn.Module):
    """Subtract a fixed mean and divide by a fixed standard deviation.

    Parameters
    ----------
    mean, std : Tensor
        Of a shape that broadcasts with a row; a deviation of 0 (constant feature) becomes 1.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", torch.where(std > 0, std, 1.0).float())

    def forward(self, x: Tensor) -> Tensor:
        """Standardise a batch."""
        return (x.float() - self.mean) / self.std


def fit_standardize(x: Tensor, scaling: Scaling = "feature") -> Standardize:
    """Return a `Standardize` with the mean and deviation of each feature or image channel.

    Parameters
    ----------
    x : Tensor of shape (n, n_features) or (n, channels, height, width)
    scaling : {"feature", "common"}
        Divide each feature by its own deviation, or all features by one: the square root of their
        mean variance. Has no effect on images.
    """
    wide = x.double()
    if x.dim() == 2:
        std = wide.std(0, correction=0)
        if scaling == "common":
            std = std.square().mean().sqrt().expand_as(std)
        return Standardize(wide.mean(0), std)
    over = (0, 2, 3)
    return Standardize(
        wide.mean(over, keepdim=True)[0], wide.std(over, correction=0, keepdim=True)[0]
    )
