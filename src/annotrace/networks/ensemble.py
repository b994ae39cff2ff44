"""Ensembles of networks that are trained together and averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from annotrace.networks.text import TextLayer, stack_text_layers


class Ensemble(nn.Module):
    """Networks with common input stages and separate weights.

    The weights of perceptrons are stacked, so that a step of five networks costs little more than a
    step of one. Other networks run one after the other.

    Parameters
    ----------
    networks : sequence of nn.Module
        As `build_backbone` returns them: input stages, then the body.

    Attributes
    ----------
    temperature : Tensor of shape ()
        Divides the logits before the probabilities are averaged.
    """

    temperature: Tensor

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.size = len(networks)
        *stages, _ = networks[0].children()
        first = [next(network.children()) for network in networks]
        texts = [layer for layer in first if isinstance(layer, TextLayer)]
        self.stage = stack_text_layers(texts) if texts else nn.Sequential(*stages)
        bodies = [list(network.children())[-1] for network in networks]
        self.bodies = _Stacked(bodies) if _is_perceptron(bodies[0]) else _Separate(bodies)
        self.register_buffer("temperature", torch.ones((), device="cpu"))

    def each(self, rows: Tensor) -> Tensor:
        """Return the logits of every network, shape (n_networks, n_rows, n_classes).

        Parameters
        ----------
        rows : Tensor of shape (n_rows, ...)
            The output of `stage`, mixed or not.
        """
        if isinstance(self.stage, TextLayer):  # It has made a row for each network.
            rows = rows.transpose(0, 1)
        logits: Tensor = self.bodies(rows)
        return logits

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the log of the mean class probabilities, shape (n_rows, n_classes)."""
        logits = self.each(self.stage(inputs))
        # In float32 the sum over networks depends on the position in the array.
        wide = logits.float() if logits.device.type == "mps" else logits.double()
        log_p = (wide / self.temperature).log_softmax(2)
        return log_p.logsumexp(0) - math.log(len(log_p))

    @torch.no_grad()
    def shrink_towards(self, fresh: Ensemble, share: float) -> None:
        """Interpolate all weights towards those of a newly initialised ensemble.

        A network that continues training remembers its previous targets, and a new one starts from
        nothing. Halfway between, it learns as well as a new one in half the time (Ash and Adams,
        NeurIPS 2020).

        Parameters
        ----------
        fresh : Ensemble
        share : float
            0 keeps the weights, 1 replaces them.
        """
        for own, other in zip(self.parameters(), fresh.parameters(), strict=True):
            own.lerp_(other, share)


def max_saved_size(state: Mapping[str, Tensor]) -> int:
    """Return how many networks the state of an ensemble can be of, before one is built."""
    separate = {name.split(".")[1] for name in state if name.startswith("bodies.")}
    first, texts = state.get("bodies.0.weight"), state.get("stage.weight")
    stacked = len(first) if first is not None and first.dim() == 3 else 0
    # The layer of texts is all that a linear network has: (n_ngrams, n_networks, width).
    of_texts = texts.shape[1] if texts is not None and texts.dim() == 3 else 0
    return max(len(separate), stacked, of_texts)


class _Separate(nn.ModuleList):
    def forward(self, rows: Tensor) -> Tensor:
        return torch.stack([body(rows) for body in self])


class _Stacked(nn.Sequential):
    """Perceptrons computed by batched matrix products."""

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
    """Whether a network is a plain perceptron: nothing subclassed, hooked, frozen or shared."""
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
