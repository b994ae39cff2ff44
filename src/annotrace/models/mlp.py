"""A multi-layer perceptron for feature arrays."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


def mlp(n_features: int, n_classes: int, hidden: Sequence[int] = (128,)) -> nn.Sequential:
    """Build a perceptron with ReLU layers of the widths in `hidden`; empty is linear."""
    layers: list[nn.Module] = []
    width = n_features
    for next_width in hidden:
        layers += [nn.Linear(width, next_width), nn.ReLU()]
        width = next_width
    return nn.Sequential(*layers, nn.Linear(width, n_classes))
