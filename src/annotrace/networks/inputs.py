"""Input stages, from stored arrays to float32, channels first, standardised."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotrace.errors import InputError


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
        if len(shape) == 2:
            self.channels, self.channels_last = 1, True
        elif len(shape) == 3 and (shape[-1] in (1, 3) or shape[0] in (1, 3)):
            self.channels_last = shape[-1] in (1, 3)
            self.channels = shape[-1] if self.channels_last else shape[0]
        else:
            raise InputError(
                "Expected images of shape (height, width), (height, width, channels) or "
                f"(channels, height, width) with 1 or 3 channels, but got {shape}."
            )

    def forward(self, images: Tensor) -> Tensor:
        """Convert a batch."""
        x = images.float() / 255 if images.dtype == torch.uint8 else images.float()
        if x.dim() == 3:
            x = x.unsqueeze(-1)
        return x.permute(0, 3, 1, 2) if self.channels_last else x


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


def fit_standardize(x: Tensor) -> Standardize:
    """Return a `Standardize` with the mean and deviation of each feature or image channel.

    Parameters
    ----------
    x : Tensor of shape (n, n_features) or (n, channels, height, width)
    """
    wide = x.double()
    if x.dim() == 2:
        return Standardize(wide.mean(0), wide.std(0, correction=0))
    over = (0, 2, 3)
    return Standardize(
        wide.mean(over, keepdim=True)[0], wide.std(over, correction=0, keepdim=True)[0]
    )
