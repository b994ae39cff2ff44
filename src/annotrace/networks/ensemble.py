"""Ensembles of networks that are trained together and averaged."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
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
    n_rounds : int
        The networks are of so many rounds of training, those of the first round first. Those of
        different rounds with the same place are averaged before the temperature applies.

    Attributes
    ----------
    temperature : Tensor of shape ()
        Divides the logits before the probabilities are averaged.
    """

    temperature: Tensor

    def __init__(self, networks: Sequence[nn.Module], n_rounds: int = 1) -> None:
        super().__init__()
        self.size, self.n_rounds = len(networks), n_rounds
        *stages, _ = networks[0].children()
        first = [next(network.children()) for network in networks]
        texts = [layer for layer in first if isinstance(layer, TextLayer)]
        self.stage = stack_text_layers(texts) if texts else nn.Sequential(*stages)
        bodies = [list(network.children())[-1] for network in networks]
        self.bodies = _Stacked(bodies) if _is_perceptron(bodies[0]) else _Separate(bodies)
        self.register_buffer("temperature", torch.ones((), device="cpu"))

    @classmethod
    def joined(cls, rounds: Sequence[Ensemble]) -> Ensemble:
        """Return one ensemble of several rounds of networks with the same input stages."""
        joined = copy.deepcopy(rounds[0])
        joined.size, joined.n_rounds = sum(each.size for each in rounds), len(rounds)
        if isinstance(joined.stage, TextLayer):
            _join_parameters(joined.stage, [each.stage for each in rounds], 1)
        if isinstance(joined.bodies, _Stacked):
            bodies = [each.bodies for each in rounds]
            _join_parameters(joined.bodies, bodies, 0)
            _join_averages(joined.bodies, bodies)
        else:
            joined.bodies = _Separate([body for each in rounds for body in each.bodies])
        return joined

    def by_place(self, rows: Tensor) -> Tensor:
        """Return the logits of each place, averaged over rounds, (n_places, n_rows, n_classes).

        Parameters
        ----------
        rows : Tensor of shape (n_rows, ...)
            The output of `stage`.
        """
        logits = self.each(rows)
        if self.n_rounds == 1:
            return logits
        by_round = logits.view(self.n_rounds, -1, *logits.shape[1:])
        return by_round.float().log_softmax(-1).mean(0)

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
        logits = self.by_place(self.stage(inputs))
        # In float32 the sum over networks depends on the position in the array.
        wide = logits.float() if logits.device.type == "mps" else logits.double()
        log_p = (wide / self.temperature).log_softmax(2)
        return log_p.logsumexp(0) - math.log(len(log_p))


def max_saved_size(state: Mapping[str, Tensor]) -> int:
    """Return how many networks the state of an ensemble can be of, before one is built."""
    separate = {name.split(".")[1] for name in state if name.startswith("bodies.")}
    first, texts = state.get("bodies.0.weight"), state.get("stage.weight")
    stacked = len(first) if first is not None and first.dim() == 3 else 0
    # The layer of texts is all that a linear network has: (n_ngrams, n_networks, width).
    of_texts = texts.shape[1] if texts is not None and texts.dim() == 3 else 0
    return max(len(separate), stacked, of_texts)


def _join_parameters(joined: nn.Module, parts: Sequence[nn.Module], dim: int) -> None:
    """Replace each parameter by those of all parts, joined along a dimension.

    Biases of texts have one dimension fewer than weights: theirs is the one before.
    """
    for name, parameter in joined.named_parameters():
        own = [dict(part.named_parameters())[name].detach() for part in parts]
        place = min(dim, parameter.dim() - 2)
        parameter.data = torch.cat(own, place)


def _join_averages(joined: nn.Module, parts: Sequence[nn.Module]) -> None:
    """Replace the running averages of stacked perceptrons by those of all parts."""
    for name, average in joined.named_buffers():
        average.data = torch.cat([dict(part.named_buffers())[name] for part in parts])


class _Separate(nn.ModuleList):
    def forward(self, rows: Tensor) -> Tensor:
        return torch.stack([body(rows) for body in self])


class _Stacked(nn.Sequential):
    """Perceptrons computed by batched matrix products."""

    def __init__(self, perceptrons: Sequence[nn.Module]) -> None:
        layers = zip(*perceptrons, strict=True)
        super().__init__(*(_stacked(same) for same in layers))


def _stacked(same: Sequence[nn.Module]) -> nn.Module:
    """Return one layer in place of the same layer of each network."""
    if isinstance(same[0], nn.Linear):
        return _StackedLinear(same)
    return _StackedBatchNorm(same) if isinstance(same[0], nn.BatchNorm1d) else same[0]


class _StackedLinear(nn.Module):
    def __init__(self, layers: Sequence[Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))

    def forward(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, rows.expand(len(self.weight), -1, -1), self.weight)


class _StackedBatchNorm(nn.Module):
    """Batch normalisation by the statistics of each network: parameters are (n_networks, width)."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, layers: Sequence[Any]) -> None:
        super().__init__()
        self.momentum, self.eps = layers[0].momentum, layers[0].eps
        self.weight = nn.Parameter(torch.stack([layer.weight.detach() for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in layers]))
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, torch.stack([getattr(layer, name) for layer in layers]))

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise rows, (n_networks, n_rows, width): the columns of one wide array."""
        rows = rows.expand(len(self.weight), -1, -1)
        columns = rows.transpose(0, 1).flatten(1)
        averages = self.running_mean.view(-1), self.running_var.view(-1)
        affine = self.weight.view(-1), self.bias.view(-1)
        settings = self.training, self.momentum, self.eps
        normalized = F.batch_norm(columns, *averages, *affine, *settings)
        return normalized.view(rows.shape[1], len(rows), -1).transpose(0, 1)


def _is_perceptron(body: nn.Module) -> bool:
    """Whether a network is a plain perceptron: nothing subclassed, hooked, frozen or shared."""
    if not isinstance(body, nn.Sequential) or not _is_plain(body, nn.Sequential):
        return False
    linear = [layer for layer in body if _is_plain(layer, nn.Linear)]
    norms = [layer for layer in body if _is_plain(layer, nn.BatchNorm1d)]
    others = [layer for layer in body if _is_plain(layer, nn.ReLU)]
    weights = list(body.parameters())
    return (
        len(linear) + len(norms) + len(others) == len(body)
        and len(weights) == 2 * (len(linear) + len(norms))
        and all(norm.momentum is not None and norm.track_running_stats for norm in norms)
        and all(weight.requires_grad for weight in weights)
    )


def _is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    hooked = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
    return type(module) is kind and not hooked
