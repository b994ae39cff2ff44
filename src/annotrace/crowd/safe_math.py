"""Log-space maths that stays finite, and whose gradients do.

``log(p @ A)`` has NaN gradients from a logit gap of 90 in float32, and clamping at 1e-10 silently
zeroes them from a gap of 50. Everything here works on logarithms and in float32 at least.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.crowd.sums import sum_groups

MANY_ROWS = 4096


def at_least_float32(x: Tensor) -> Tensor:
    """Return half precision as float32; float32 and float64 unchanged."""
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
    # log_softplus(x) = x - exp(x) / 2 + ...: below -50 it equals x in float64, with slope 1, and it
    # is never above x.
    bounded = x.clamp(min=-50)
    value = F.softplus(bounded)
    slope = torch.sigmoid(bounded).div_(value)
    return torch.minimum(value.log_(), x), slope


class _LogSoftplus(torch.autograd.Function):
    """Closed-form gradient: autograd would need a second guard for the slope of small values."""

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
    """Raise if a closed-form backward pass is itself differentiated."""
    if torch.is_grad_enabled():
        raise NotImplementedError("The crowd likelihood has no second derivatives.")


def log_normalize(x: Tensor) -> Tensor:
    """Return the log-softmax of each row, computed the way that is fast for few columns.

    Parameters
    ----------
    x : Tensor of shape (..., n_columns)
    """
    # torch's is one kernel on a GPU, but four times as slow on a CPU for 5,000 rows of ten.
    return F.log_softmax(x, dim=-1) if x.is_cuda else x - x.logsumexp(-1, keepdim=True)


def inverse_softplus(y: Tensor) -> Tensor:
    """Return the x at which softplus(x) = y, for y > 0."""
    return y + torch.log(-torch.expm1(-y))


def softmax_and_log_sum(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the softmax of each row and the logarithm of the sum of its exponentials.

    Parameters
    ----------
    x : Tensor of shape (n, n_columns)
        Overwritten; not for autograd.

    Returns
    -------
    softmax : Tensor of shape (n, n_columns)
    log_sum : Tensor of shape (n,)
    """
    # torch's own softmax of few columns takes three to ten times as long on a CPU.
    largest = x.amax(dim=1, keepdim=True)
    softmax = x.sub_(largest).exp_()
    total = _row_sums(softmax)
    return softmax.div_(total), total.log_().add_(largest).squeeze(1)


def _row_sums(x: Tensor) -> Tensor:
    if len(x) < MANY_ROWS or x.is_cuda:
        return x.sum(dim=1, keepdim=True)
    # Many short rows are summed in half the time by a product with ones.
    return x @ x.new_ones(x.shape[1], 1)


def scaled_softmax_and_log_sum(x: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return the softmax of each row and the sum over rows of the log-sums, both scaled.

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
    # Fewer kernels: in each column x minus its log-softmax is the log-sum, exact where x is large,
    # and the softmax gives the other columns no weight.
    log_softmax = F.log_softmax(x, dim=1)
    softmax = log_softmax.exp().mul_(scale)
    return softmax, x.sub_(log_softmax).mul_(softmax).sum()


class _MixtureLogLikelihood(torch.autograd.Function):
    """log sum_i p_i a_i for each label; its gradient is the posterior."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, log_likelihood: Tensor, row: Tensor) -> Tensor:
        joint = log_p.index_select(0, row).add_(log_likelihood)
        posterior, log_evidence = softmax_and_log_sum(joint)
        ctx.save_for_backward(posterior, row)
        ctx.n_rows = len(log_p)
        return log_evidence

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        refuse_second_derivatives()
        posterior, row = ctx.saved_tensors
        joint_grad = posterior * grad[:, None]
        (log_p_grad,) = sum_groups(joint_grad, (row, ctx.n_rows))
        return log_p_grad, joint_grad, None


def mixture_log_likelihood(log_p: Tensor, log_likelihood: Tensor, row: Tensor) -> Tensor:
    """Compute log p(label | x) = log sum_i p(i | x) p(label | i) for each label.

    Parameters
    ----------
    log_p : Tensor of shape (n_rows, n_classes)
        Log-probabilities of the classes.
    log_likelihood : Tensor of shape (n_labels, n_classes)
        log p(label | true class) of each label.
    row : LongTensor of shape (n_labels,)
        The row of `log_p` that each label belongs to.

    Returns
    -------
    Tensor of shape (n_labels,)
    """
    return _MixtureLogLikelihood.apply(log_p, log_likelihood, row)  # type: ignore[no-any-return,no-untyped-call]
