"""Several networks of one kind, learned together and averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Ensemble(nn.Module):
    """Networks that share their input stage and nothing else.

    Perceptrons are kept as one stack of weights, so that a step of five costs little more than a
    step of one; other networks stand side by side.

    Parameters
    ----------
    networks : sequence of nn.Module
        As `build_backbone` makes them: stages of input, then the network proper.

    Attributes
    ----------
    temperature : Tensor of shape ()
        Logits are divided by it before they are averaged.
    """

    temperature: Tensor

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.size = len(networks)
        *stages, _ = networks[0].children()
        self.stage = nn.Sequential(*stages)
        bodies = [list(network.children())[-1] for network in networks]
        self.bodies = _Stack(bodies) if _is_perceptron(bodies[0]) else _SideBySide(bodies)
        self.register_buffer("temperature", torch.ones(()))

    def each(self, rows: Tensor) -> Tensor:
        """Give the logits of every network, shape (n_networks, n_rows, n_classes).

        Parameters
        ----------
        rows : Tensor of shape (n_rows, ...)
            What `stage` gives, mixed or not.
        """
        logits: Tensor = self.bodies(rows)
        return logits

    def forward(self, inputs: Tensor) -> Tensor:
        """Give the logarithm of the mean probability of each class, (n_rows, n_classes)."""
        logits = self.each(self.stage(inputs))
        # Sums of a few numbers in float32 depend on where in the array they stand.
        wide = logits.float() if logits.device.type == "mps" else logits.double()
        log_p = (wide / self.temperature).log_softmax(2)
        return log_p.logsumexp(0) - math.log(len(log_p))

    @torch.no_grad()
    def shrink_towards(self, fresh: Ensemble, share: float) -> None:
        """Move all weights this share of the way to others, and keep the rest.

        A network that goes on from its last targets remembers them; one that begins anew has all
        to learn. Half-way between, it learns as well as from the beginning and in half the time
        (Ash and Adams, NeurIPS 2020).
        """
        for own, other in zip(self.bodies.parameters(), fresh.bodies.parameters(), strict=True):
            own.lerp_(other, share)


class _SideBySide(nn.ModuleList):
    def forward(self, rows: Tensor) -> Tensor:
        return torch.stack([body(rows) for body in self])


class _Stack(nn.Sequential):
    """Perceptrons as products of three-dimensional arrays."""

    def __init__(self, perceptrons: Sequence[nn.Module]) -> None:
        layers = zip(*perceptrons, strict=True)
        super().__init__(
            *(
                _StackedLinear(same) if isinstance(same[0], nn.Linear) else same[0]
                for same in layers
            )
        )


class _StackedLinear(nn.Module):
    def __init__(self, layers: Sequence[Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))

    def forward(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, rows.expand(len(self.weight), -1, -1), self.weight)


def _is_perceptron(body: nn.Module) -> bool:
    """Tell whether a network is a perceptron with nothing subclassed, hooked, frozen or shared."""
    if not isinstance(body, nn.Sequential) or not _is_plain(body, nn.Sequential):
        return False
    linear = [layer for layer in body if _is_plain(layer, nn.Linear)]
    others = [layer for layer in body if _is_plain(layer, nn.ReLU)]
    weights = list(body.parameters())
    return (
        len(linear) + len(others) == len(body)
        and len(weights) == 2 * len(linear)
        and all(weight.requires_grad for weight in weights)
    )


def _is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    hooked = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
    return type(module) is kind and not hooked
