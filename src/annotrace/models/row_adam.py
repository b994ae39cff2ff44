"""Adam for sparse gradients: rows that a batch did not touch are left alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
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

    def _step(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["steps"] = parameter.new_zeros(len(parameter), dtype=torch.float32)
            state["moments"] = parameter.new_zeros(
                len(parameter), 2, *parameter.shape[1:], dtype=torch.float32
            )
        rows, grad = _rows_of(parameter.grad)
        first_beta, second_beta = group["betas"]
        steps = state["steps"].index_select(0, rows).add_(1)
        moments = state["moments"].index_select(0, rows)
        first, second = moments.unbind(1)
        first.lerp_(grad, 1 - first_beta)
        second.lerp_(grad.square(), 1 - second_beta)
        state["steps"].index_copy_(0, rows, steps)
        state["moments"].index_copy_(0, rows, moments)
        # -lr sqrt(1 - b2^t) / (1 - b1^t)
        rate = torch.expm1(steps * math.log(second_beta)).neg_().sqrt_()
        rate.div_(torch.expm1(steps * math.log(first_beta))).mul_(group["lr"])
        move = second.sqrt().add_(group["eps"]).reciprocal_().mul_(first)
        move.mul_(rate.view(-1, *[1] * (move.dim() - 1)))
        parameter.index_add_(0, rows, move.to(parameter.dtype))


def _rows_of(grad: Tensor | None) -> tuple[Tensor, Tensor]:
    assert grad is not None
    if not grad.is_sparse:
        raise TypeError("RowAdam steps sparse gradients; use torch.optim.Adam for dense ones.")
    rows, place = torch.unique(grad._indices()[0], return_inverse=True)
    values = grad._values().float()
    return rows, values.new_zeros(len(rows), *values.shape[1:]).index_add_(0, place, values)
