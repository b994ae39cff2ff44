"""The paper's four-layer network."""

from __future__ import annotations

from torch import nn


def cnn4(
    channels: int, n_classes: int, widths: tuple[int, int, int, int] = (32, 32, 64, 64)
) -> nn.Sequential:
    """Build the network of the paper's MNIST experiments.

    Four 3 x 3 convolutions with ReLU, 2 x 2 max-pooling after each of the first two, global average
    pooling after the last, and one linear layer. The cardiac experiments use widths of 128. How it
    begins, the paper does not say: by He's rule, since by torch's own, under which signals fade
    from layer to layer, half of the ReLUs may be dead after an epoch.
    """
    layers: list[nn.Module] = []
    for place, width in enumerate(widths):
        convolution = nn.Conv2d(channels, width, kernel_size=3, padding=1)
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
        layers += [convolution, nn.ReLU()]
        if place < 2:
            layers.append(nn.MaxPool2d(2))
        channels = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, n_classes)
    )
