"""Adam for sparse gradients: rows that a batch did not touch are left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class RowAdam(Optimizer):
    """Adam with a step count for each row, for parameters whose gradients are sparse.

    ``torch.optim.SparseAdam`` corrects the bias of its moments by the number of steps in all, so
    that a row first met at step 1,000 moves three times too far. Here each row counts its own.

    Parameters
    ----------
    params : iterable of Parameter or of groups
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
        """Move the rows that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` gave; unlike torch's, averages stay in float32 for any layer."""
        super().load_state_dict(state_dict)
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        parameters = [each for group in self.param_groups for each in group["params"]]
        for number, parameter in zip(numbers, parameters, strict=True):
            if number in state_dict["state"]:
                averages = state_dict["state"][number]["averages"]
                own = averages.to(parameter.device, torch.float32, copy=True)
                self.state[parameter]["averages"] = own

    def _step(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        size = parameter[0].numel()
        if not state:
            # Both moments of a row, and what the same averages make of ones (1 - beta^t), in one
            # array, since finding rows is most of the cost.
            width = 2 * size + 2
            state["averages"] = parameter.new_zeros(len(parameter), width, dtype=torch.float32)
        rows, grad = _rows_of(parameter.grad)
        averages = state["averages"].index_select(0, rows)
        first, second, first_bias, second_bias = averages.split((size, size, 1, 1), dim=1)
        first_beta, second_beta = group["betas"]
        one = grad.new_ones(())
        first.lerp_(grad, 1 - first_beta)
        first_bias.lerp_(one, 1 - first_beta)
        second.mul_(second_beta).addcmul_(grad, grad, value=1 - second_beta)
        second_bias.lerp_(one, 1 - second_beta)
        state["averages"].index_copy_(0, rows, averages)
        # -lr (m / bias_1) / (sqrt(v / bias_2) + eps), with what is of a row taken together.
        root = second_bias.sqrt()
        move = first / second.sqrt().add_(root * group["eps"])
        move.mul_((root / first_bias).mul_(-group["lr"]))
        # Without alpha=, with which index_add_ is seven times as slow.
        parameter.index_add_(0, rows, move.to(parameter.dtype).view(-1, *parameter.shape[1:]))


def _rows_of(grad: Tensor | None) -> tuple[Tensor, Tensor]:
    """Give the rows that have a gradient, and it as (n_rows, ...) flattened, in float32."""
    assert grad is not None
    if not grad.is_sparse:
        raise TypeError("RowAdam steps sparse gradients; use torch.optim.Adam for dense ones.")
    summed = grad.float().coalesce()
    return summed.indices()[0], summed.values().flatten(1)


def parameter_groups(
    *modules: nn.Module, lr: float, weight_decay: float = 0.0
) -> list[dict[str, Any]]:
    """Sort the parameters of modules into groups for an optimiser.

    Matrices of a layer with an `lr_scale` (a `Confusion`) get the rate times that, and no decay;
    the rest gets the rate and the decay.

    Parameters
    ----------
    *modules : nn.Module
    lr, weight_decay : float

    Examples
    --------
    >>> from annotrace.models.confusion import Confusion
    >>> groups = parameter_groups(nn.Linear(3, 2), Confusion(5, 2), lr=1e-3)
    >>> [group["lr"] for group in groups]
    [0.001, 0.01]
    """
    scaled = [part for module in modules for part in module.modules() if hasattr(part, "lr_scale")]
    held = {id(parameter) for part in scaled for parameter in part.parameters()}
    network = [
        parameter
        for module in modules
        for parameter in module.parameters()
        if id(parameter) not in held
    ]
    groups: list[dict[str, Any]] = []
    if network:
        groups.append({"params": network, "lr": lr, "weight_decay": weight_decay})
    for part in scaled:
        rate = lr * float(part.lr_scale)  # type: ignore[arg-type]
        for parameter in part.parameters():
            groups.append({"params": [parameter], "lr": rate, "weight_decay": 0.0})
    return groups
