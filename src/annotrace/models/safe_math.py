"""Log-space maths that stays finite, and whose gradients do.

``log(p @ A)`` has NaN gradients from a logit gap of 90 in float32, and clamping at 1e-10 silently
zeroes them from a gap of 50. Everything here works on logarithms and in float32 at least.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Widen half precision to float32; float32 and float64 stay as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def log_softplus(x: Tensor) -> Tensor:
    """Compute log(log(1 + exp(x))), which tends to x as x falls.

    Parameters
    ----------
    x : Tensor of any shape
    """
    # log_softplus(x) = x - exp(x) / 2 + ...: below -50 that is x to the last digit of float64.
    small = x < -50
    return torch.where(small, x, F.softplus(torch.where(small, 0.0, x)).log())


def log_softplus_and_slope(x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `log_softplus` and its derivative, which tends to 1 as x falls; not for autograd."""
    small, value = x < -50, F.softplus(x)
    slope = torch.sigmoid(x).div_(value).masked_fill_(small, 1.0)
    return torch.where(small, x, value.log_()), slope


def inverse_softplus(y: float) -> float:
    """Give the x at which softplus(x) = y, for y > 0."""
    value = torch.tensor(y, dtype=torch.float64)
    return float(value + torch.log(-torch.expm1(-value)))


class _MixtureLogLikelihood(torch.autograd.Function):
    """Log of sum_i p_i a_i for each label, with its gradient (the posterior) in closed form."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, log_columns: Tensor, row: Tensor) -> Tensor:
        joint = log_p.index_select(0, row).add_(log_columns)
        # By hand, since torch's softmax of few columns takes ten times as long.
        largest = joint.amax(dim=1, keepdim=True)
        posterior = joint.sub_(largest).exp_()
        total = posterior.sum(dim=1, keepdim=True)
        ctx.save_for_backward(posterior.div_(total), row)
        ctx.n_rows = len(log_p)
        return total.log_().add_(largest).squeeze(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        if torch.is_grad_enabled():
            raise NotImplementedError("The crowd likelihood has no second derivatives.")
        posterior, row = ctx.saved_tensors
        joint_grad = posterior * grad[:, None]
        log_p_grad = joint_grad.new_zeros(ctx.n_rows, joint_grad.shape[1])
        return log_p_grad.index_add_(0, row, joint_grad), joint_grad, None


def mixture_log_likelihood(log_p: Tensor, log_columns: Tensor, row: Tensor) -> Tensor:
    """Compute log p(label | x) = log sum_i p(i | x) p(label | i) for each label.

    Parameters
    ----------
    log_p : Tensor of shape (n_rows, n_classes)
        Log-probabilities of the classes.
    log_columns : Tensor of shape (n_labels, n_classes)
        Log-probability of each label given each true class: a column of a confusion matrix.
    row : LongTensor of shape (n_labels,)
        The row of `log_p` that each label belongs to.

    Returns
    -------
    Tensor of shape (n_labels,)
    """
    return _MixtureLogLikelihood.apply(log_p, log_columns, row)  # type: ignore[no-any-return,no-untyped-call]
