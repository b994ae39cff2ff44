"""The likelihood of a batch's labels under sparse confusion matrices, with its gradient by hand.

Only the annotators of the batch are touched. By plain autograd the same took twice the time: with a
small network, a step costs as much as its sixty small operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.crowd.safe_math import (
    at_least_float32,
    log_softplus_and_slope,
    refuse_second_derivatives,
)

Parametrization: TypeAlias = Literal["softplus", "softmax"]
LOWEST = 50.0


def batch_log_likelihood(
    weight: Tensor,
    shared: Tensor | None,
    annotator: Tensor,
    label: Tensor,
    parametrization: Parametrization,
) -> tuple[Tensor, Tensor]:
    """Return the log-likelihood of labels and the trace of each label's annotator, in one pass.

    Parameters
    ----------
    weight : Tensor of shape (n_annotators, n_classes, n_classes)
        Its gradient is sparse.
    shared : Tensor of shape (n_classes, n_classes) or None
        Added to the weights of every annotator.
    annotator, label : LongTensor of shape (n_labels,)
    parametrization : {"softplus", "softmax"}

    Returns
    -------
    log_likelihood : Tensor of shape (n_labels, n_classes)
    traces : Tensor of shape (n_labels,)
    """
    return _BatchLogLikelihood.apply(  # type: ignore[no-any-return,no-untyped-call]
        weight, shared, annotator, label, parametrization
    )


class _BatchLogLikelihood(torch.autograd.Function):
    """Works on columns and diagonals of matrices only, where possible."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        shared: Tensor | None,
        annotator: Tensor,
        label: Tensor,
        parametrization: Parametrization,
    ) -> tuple[Tensor, Tensor]:
        chosen = at_least_float32(weight.index_select(0, annotator))
        if shared is not None:
            chosen += shared
        if parametrization == "softmax":
            chosen -= chosen.amax(-1, keepdim=True)
        elif _may_underflow(chosen):
            chosen += (-LOWEST - chosen.amax(-1, keepdim=True)).clamp_(min=0)
        column = label[:, None, None].expand(-1, chosen.shape[1], 1)
        reported = chosen.gather(2, column).squeeze(2)
        rows = _ROWS[parametrization]
        values = rows.value(chosen)
        total = values.sum(-1)
        correct = values.diagonal(dim1=1, dim2=2) / total
        log_reported, log_slope = rows.log_and_slope(reported)
        ctx.save_for_backward(chosen, log_slope, total, correct, column, annotator)
        ctx.slope, ctx.weight_like = rows.slope, (weight.shape, weight.dtype)
        ctx.shares = shared is not None
        return log_reported - total.log(), correct.sum(1)

    @staticmethod
    def backward(
        ctx: Any, grad_log: Tensor, grad_traces: Tensor
    ) -> tuple[Tensor, Tensor | None, None, None, None]:
        refuse_second_derivatives()
        chosen, log_slope, total, correct, column, annotator = ctx.saved_tensors
        # With A = f(w) / sum f(w), d log A_ij / d w_ik = 1[j = k] (log f)'(w_ik) - f'(w_ik) / sum.
        slope = ctx.slope(chosen)
        of_traces = grad_traces[:, None]
        grad = slope * torch.addcmul(grad_log, of_traces, correct).div_(-total)[:, :, None]
        grad.scatter_add_(2, column, (grad_log * log_slope)[:, :, None])
        grad.diagonal(dim1=1, dim2=2).addcmul_(slope.diagonal(dim1=1, dim2=2) / total, of_traces)
        shape, dtype = ctx.weight_like
        # Not by check_invariants=False, at which torch 2.11 warns.
        with torch.sparse.check_sparse_tensor_invariants(enable=False):
            sparse = torch.sparse_coo_tensor(annotator[None], grad.to(dtype), shape)
        return sparse, grad.sum(0).to(dtype) if ctx.shares else None, None, None, None


def _may_underflow(weight: Tensor) -> bool:
    """Whether a row of weights may be all below -50, so that it must be raised first.

    Softplus is the exponential there, so that a raised row gives the same matrix; otherwise its sum
    would be 0 from -104 on. On a GPU the answer is always yes, since looking would wait for it.
    """
    if weight.is_cuda or torch.compiler.is_compiling() or weight.numel() == 0:
        return True
    return bool(weight.amin() < -LOWEST)


class _Rows(NamedTuple):
    """A positive function f of the weights, its derivative, and log f with its derivative."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    log_and_slope: Callable[[Tensor], tuple[Tensor, Tensor]]


_ROWS = {
    "softplus": _Rows(F.softplus, torch.sigmoid, log_softplus_and_slope),
    "softmax": _Rows(torch.exp, torch.exp, lambda weight: (weight, torch.ones_like(weight))),
}
