"""Log-space maths that stays finite, and whose gradients do.

``log(p @ A)`` has NaN gradients from a logit gap of 90 in float32, and clamping at 1e-10 silently
zeroes them from a gap of 50. Everything here works on logarithms and in float32 at least.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.models.sums import add_up


def at_least_float32(x: Tensor) -> Tensor:
    """Widen half precision to float32; float32 and float64 stay as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def log_softplus(x: Tensor) -> Tensor:
    """Compute log(log(1 + exp(x))), which tends to x as x falls.

    Parameters
    ----------
    x : Tensor of any shape
    """
    return _LogSoftplus.apply(x)  # type: ignore[no-any-return,no-untyped-call]


def log_softplus_and_slope(x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `log_softplus` and its derivative, which tends to 1 as x falls; not for autograd."""
    # log_softplus(x) = x - exp(x) / 2 + ...: below -50 that is x to the last digit of float64, and
    # the slope 1. It is never above x.
    bounded = x.clamp(min=-50)
    value = F.softplus(bounded)
    slope = torch.sigmoid(bounded).div_(value)
    return torch.minimum(value.log_(), x), slope


class _LogSoftplus(torch.autograd.Function):
    """In closed form: by plain autograd small values need a second guard, for the slope."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        value, slope = log_softplus_and_slope(x)
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        refuse_second_derivatives()
        slope: Tensor = ctx.saved_tensors[0]
        return grad * slope


def refuse_second_derivatives() -> None:
    """Raise where a backward pass in closed form is itself to be differentiated."""
    if torch.is_grad_enabled():
        raise NotImplementedError("The crowd likelihood has no second derivatives.")


def log_normalize(x: Tensor) -> Tensor:
    """Subtract log sum exp of each row: ``log_softmax``, by the way that is fast for few columns.

    Parameters
    ----------
    x : Tensor of shape (..., n_columns)
    """
    # One kernel on a GPU; on a CPU four times as slow as by hand for 5,000 rows of ten.
    return F.log_softmax(x, dim=-1) if x.is_cuda else x - x.logsumexp(-1, keepdim=True)


def inverse_softplus(y: float) -> float:
    """Give the x at which softplus(x) = y, for y > 0."""
    value = torch.tensor(y, dtype=torch.float64)
    return float(value + torch.log(-torch.expm1(-value)))


def softmax_and_log_sum(x: Tensor) -> tuple[Tensor, Tensor]:
    """Give the softmax of each row, and the logarithm of the sum of its exponentials.

    Parameters
    ----------
    x : Tensor of shape (n, n_columns)
        Overwritten; not for autograd.

    Returns
    -------
    softmax : Tensor of shape (n, n_columns)
    log_sum : Tensor of shape (n,)
    """
    # By hand, since torch's softmax of few columns takes ten times as long on a CPU.
    largest = x.amax(dim=1, keepdim=True)
    softmax = x.sub_(largest).exp_()
    total = softmax.sum(dim=1, keepdim=True)
    return softmax.div_(total), total.log_().add_(largest).squeeze(1)


def scaled_softmax_and_log_sum(x: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Give the softmax of each row, and the sum over rows of `softmax_and_log_sum`, both scaled.

    Parameters
    ----------
    x : Tensor of shape (n, n_columns)
        Overwritten; not for autograd.
    scale : float

    Returns
    -------
    softmax : Tensor of shape (n, n_columns)
    log_sum : Tensor of shape ()
    """
    if not x.is_cuda:
        softmax, log_sum = softmax_and_log_sum(x)
        return softmax.mul_(scale), log_sum.sum() * scale
    # Fewer kernels. In each column x less its log-softmax is the log-sum, exact where x is large;
    # the softmax gives the others no weight.
    log_softmax = F.log_softmax(x, dim=1)
    softmax = log_softmax.exp().mul_(scale)
    return softmax, x.sub_(log_softmax).mul_(softmax).sum()


class _MixtureLogLikelihood(torch.autograd.Function):
    """Log of sum_i p_i a_i for each label, with its gradient (the posterior) in closed form."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, log_columns: Tensor, row: Tensor) -> Tensor:
        joint = log_p.index_select(0, row).add_(log_columns)
        posterior, log_likelihood = softmax_and_log_sum(joint)
        ctx.save_for_backward(posterior, row)
        ctx.n_rows = len(log_p)
        return log_likelihood

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        refuse_second_derivatives()
        posterior, row = ctx.saved_tensors
        joint_grad = posterior * grad[:, None]
        (log_p_grad,) = add_up(joint_grad, (row, ctx.n_rows))
        return log_p_grad, joint_grad, None


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
