"""The optimisers of a training: Adam, a row-wise Adam for sparse gradients, and momentum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from annotrace.crowd.sums import sum_groups


class RowAdam(Optimizer):
    """Adam with a step count per row, for parameters with sparse gradients.

    Rows without a gradient do not move. ``torch.optim.SparseAdam`` corrects the bias of its moments
    by the total number of steps, so a row that first occurs at step 1,000 moves three times too
    far. Here every row counts its own steps.

    Parameters
    ----------
    params : iterable of Parameter or of parameter groups
        Each of shape (n_rows, ...).
    lr : float
    betas : pair of float
    eps : float
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the rows that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; unlike torch, keep the averages in float32 for parameters of any type."""
        super().load_state_dict(state_dict)
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        parameters = [each for group in self.param_groups for each in group["params"]]
        for number, parameter in zip(numbers, parameters, strict=True):
            if number in state_dict["state"]:
                averages = state_dict["state"][number]["averages"]
                own = averages.to(parameter.device, torch.float32, copy=True)
                self.state[parameter]["averages"] = own

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        size = parameter[0].numel()
        if not state:
            # One array for both moments of a row and for their bias corrections (1 - beta^t),
            # because gathering rows is most of the cost.
            width = 2 * size + 2
            state["averages"] = parameter.new_zeros(len(parameter), width, dtype=torch.float32)
        rows, grad = _sparse_rows(parameter.grad)
        averages = state["averages"].index_select(0, rows)
        first, second, first_bias, second_bias = averages.split((size, size, 1, 1), dim=1)
        first_beta, second_beta = group["betas"]
        one = grad.new_ones(())
        first.lerp_(grad, 1 - first_beta)
        first_bias.lerp_(one, 1 - first_beta)
        second.mul_(second_beta).addcmul_(grad, grad, value=1 - second_beta)
        second_bias.lerp_(one, 1 - second_beta)
        state["averages"].index_copy_(0, rows, averages)
        # -lr (m / bias_1) / (sqrt(v / bias_2) + eps), with the factors of a row collected.
        root = second_bias.sqrt()
        move = first / second.sqrt().add_(root * group["eps"])
        move.mul_((root / first_bias).mul_(-group["lr"]))
        # Copied, not added: rows may occur several times.
        flat = parameter.view(len(parameter), size)
        flat.index_copy_(0, rows, flat.index_select(0, rows).add_(move))


def _sparse_rows(grad: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the rows with a gradient, shape (n,), and their gradients in float32, (n, size).

    A row may occur several times, each time with its whole gradient.
    """
    assert grad is not None
    if not grad.is_sparse:
        raise TypeError("RowAdam takes sparse gradients; use torch.optim.Adam for dense ones.")
    if grad.is_cuda:
        # Waiting for the number of distinct rows would take longer, and no CUDA graph could do it.
        rows, values = grad._indices()[0], grad._values().float().flatten(1)
        return rows, sum_repeated_rows(rows, values, len(grad))
    summed = grad.float().coalesce()
    return summed.indices()[0], summed.values().flatten(1)


def sum_repeated_rows(rows: Tensor, values: Tensor, n_rows: int) -> Tensor:
    """Replace the value of each row by the sum over all places where the row occurs.

    The result has the shape of the input, whatever the number of distinct rows, and is
    deterministic.

    Parameters
    ----------
    rows : LongTensor of shape (n,)
        Numbers below `n_rows`.
    values : Tensor of shape (n, width)
    n_rows : int

    Examples
    --------
    >>> sum_repeated_rows(torch.tensor([4, 7, 4]), torch.tensor([[1.0], [2.0], [4.0]]), 9)
    tensor([[5.],
            [2.],
            [5.]])
    """
    place = torch.arange(len(rows), device=rows.device)
    last = rows.new_zeros(n_rows).scatter_reduce_(0, rows, place, "amax")
    group = last.index_select(0, rows)
    (sums,) = sum_groups(values, (group, len(rows)))
    return sums.index_select(0, group)


def parameter_groups(
    *modules: nn.Module, lr: float, weight_decay: float = 0.0
) -> list[dict[str, Any]]:
    """Return the parameters of modules as groups for an optimiser.

    The parameters of a layer with an `lr_scale` (a `Confusion`) get the learning rate times that
    factor, and no weight decay unless the layer has a `momentum` (a `TextLayer`).

    Parameters
    ----------
    *modules : nn.Module
    lr, weight_decay : float

    Examples
    --------
    >>> from annotrace.crowd import Confusion
    >>> groups = parameter_groups(nn.Linear(3, 2), Confusion(5, 2), lr=1e-3)
    >>> [group["lr"] for group in groups]
    [0.001, 0.01]
    """
    layers = [part for module in modules for part in module.modules() if hasattr(part, "lr_scale")]
    scaled = {id(parameter) for layer in layers for parameter in layer.parameters()}
    network = [
        parameter
        for module in modules
        for parameter in module.parameters()
        if id(parameter) not in scaled
    ]
    groups: list[dict[str, Any]] = []
    if network:
        groups.append({"params": network, "lr": lr, "weight_decay": weight_decay})
    for layer in layers:
        rate = lr * float(layer.lr_scale)  # type: ignore[arg-type]
        decay = weight_decay if hasattr(layer, "momentum") else 0.0
        for parameter in layer.parameters():
            groups.append({"params": [parameter], "lr": rate, "weight_decay": decay})
    return groups


def make_optimizers(network: nn.Module, *, lr: float, weight_decay: float) -> list[Optimizer]:
    """Return Adam, a `RowAdam` per layer with sparse gradients, and SGD for those with momentum."""
    groups = parameter_groups(network, lr=lr, weight_decay=weight_decay)
    layers = [layer for layer in network.modules() if hasattr(layer, "lr_scale")]
    sparse = {id(layer.weight) for layer in layers if getattr(layer, "sparse", False)}
    momentum = {
        id(parameter): float(layer.momentum)  # type: ignore[arg-type]
        for layer in layers
        if hasattr(layer, "momentum")
        for parameter in layer.parameters()
    }
    dense_groups, optimizers = [], list[Optimizer]()
    for group in groups:
        first = id(group["params"][0])
        if first in sparse:
            optimizers.append(RowAdam(group["params"], lr=group["lr"]))
        elif first in momentum:
            optimizers.append(torch.optim.SGD([group], momentum=momentum[first], nesterov=True))
        else:
            dense_groups.append(group)
    if dense_groups:
        optimizers.insert(0, torch.optim.Adam(_merged(dense_groups), fused=True))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return optimizers


def _merged(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return groups of parameters with those of the same settings together: Adam calls each."""
    merged: dict[tuple[float, float], dict[str, Any]] = {}
    for group in groups:
        settings = group["lr"], group["weight_decay"]
        found = merged.setdefault(settings, {**group, "params": []})
        found["params"].extend(group["params"])
    return list(merged.values())


def state_shapes(optimizer: Optimizer, parameter: Tensor) -> dict[str, torch.Size]:
    """Return the shapes of what an optimiser of `make_optimizers` keeps for a parameter."""
    if isinstance(optimizer, RowAdam):
        return {"averages": torch.Size((len(parameter), 2 * parameter[0].numel() + 2))}
    if isinstance(optimizer, torch.optim.SGD):
        return {"momentum_buffer": parameter.shape}
    return {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}


def scale_learning_rates(optimizers: Sequence[Optimizer], factor: float) -> None:
    """Set every learning rate to `factor` times its initial value."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            rate = group["initial_lr"] * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


def make_capturable(optimizers: Sequence[Optimizer]) -> None:
    """Prepare optimisers for CUDA graphs: learning rates become tensors on the device."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            device = group["params"][0].device
            group["lr"] = torch.tensor(float(group["lr"]), dtype=torch.float32, device=device)
            group["capturable"] = True
