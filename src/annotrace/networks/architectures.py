"""Network architectures: a perceptron, the paper's four-layer CNN, ResNet-9 and ResNet-50."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn


def mlp(
    n_features: int, n_classes: int, hidden: Sequence[int] = (128,), *, batch_norm: bool = False
) -> nn.Sequential:
    """Return a perceptron with ReLU layers of the widths in `hidden`; empty is linear.

    With `batch_norm`, hidden layers are normalised before the ReLU.
    """
    layers: list[nn.Module] = []
    width = n_features
    for next_width in hidden:
        normalized = [nn.BatchNorm1d(next_width)] if batch_norm else []
        layers += [nn.Linear(width, next_width), *normalized, nn.ReLU()]
        width = next_width
    return nn.Sequential(*layers, nn.Linear(width, n_classes))


def cnn4(
    channels: int, n_classes: int, widths: tuple[int, int, int, int] = (32, 32, 64, 64)
) -> nn.Sequential:
    """Return the network of the paper's MNIST experiments.

    Four 3 x 3 convolutions with ReLU, 2 x 2 max-pooling after each of the first two, global average
    pooling after the last, and one linear layer. The cardiac experiments use widths of 128. The
    paper does not state the initialisation. He's is used here: with torch's default, signals shrink
    from layer to layer, and half of the ReLUs can be dead after one epoch.
    """
    layers: list[nn.Module] = []
    for number, width in enumerate(widths):
        convolution = nn.Conv2d(channels, width, kernel_size=3, padding=1)
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
        layers += [convolution, nn.ReLU()]
        if number < 2:
            layers.append(nn.MaxPool2d(2))
        channels = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, n_classes)
    )


def _convolution(
    in_width: int, width: int, kernel: int = 3, stride: int = 1, relu: bool = True
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(in_width, width, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(width),
    ]
    return nn.Sequential(*layers, nn.ReLU(inplace=True)) if relu else nn.Sequential(*layers)


class _Residual(nn.Module):
    """The sum of a body and a shortcut."""

    def __init__(self, body: nn.Module, shortcut: nn.Module, relu: bool) -> None:
        super().__init__()
        self.body, self.shortcut, self.relu = body, shortcut, relu

    def forward(self, x: Tensor) -> Tensor:
        total = self.shortcut(x) + self.body(x)
        return F.relu(total) if self.relu else total


class _GlobalMaxPool(nn.Module):
    """AdaptiveMaxPool2d(1) and Flatten in one; the kernels of the former are slow on a GPU."""

    def forward(self, x: Tensor) -> Tensor:
        return x.amax((2, 3))


def resnet9(channels: int, n_classes: int) -> nn.Sequential:
    """Return a nine-layer residual network of 6.5 million weights, for images near 32 x 32."""

    def residual(width: int) -> _Residual:
        body = nn.Sequential(_convolution(width, width), _convolution(width, width))
        return _Residual(body, nn.Identity(), relu=False)

    return nn.Sequential(
        _convolution(channels, 64),
        _convolution(64, 128),
        nn.MaxPool2d(2),
        residual(128),
        _convolution(128, 256),
        nn.MaxPool2d(2),
        _convolution(256, 512),
        nn.MaxPool2d(2),
        residual(512),
        _GlobalMaxPool(),
        nn.Linear(512, n_classes),
    )


def _bottleneck(in_width: int, width: int, stride: int) -> _Residual:
    body = nn.Sequential(
        _convolution(in_width, width, kernel=1),
        _convolution(width, width, stride=stride),
        _convolution(width, 4 * width, kernel=1, relu=False),
    )
    shortcut: nn.Module = nn.Identity()
    if stride != 1 or in_width != 4 * width:
        shortcut = _convolution(in_width, 4 * width, kernel=1, stride=stride, relu=False)
    return _Residual(body, shortcut, relu=True)


def resnet50(channels: int, n_classes: int) -> nn.Sequential:
    """Return a fifty-layer residual network for small images.

    Its stem is one 3 x 3 convolution of stride 1 without pooling, which keeps the resolution of
    32 x 32 images.
    """
    blocks: list[nn.Module] = []
    in_width = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for block in range(depth):
            stride = 2 if block == 0 and stage > 0 else 1
            blocks.append(_bottleneck(in_width, width, stride))
            in_width = 4 * width
    return nn.Sequential(
        _convolution(channels, 64),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(in_width, n_classes),
    )
