"""The paper's loss with its gradient by hand: an optimisation of `losses.trace_regularized_nll`.

By plain autograd the loss took 63 kernels more than cross-entropy on a GPU, where a step on a small
network costs as much as its hundred kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from annotrace.crowd.confusion import Confusion
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.safe_math import (
    mixture_log_likelihood,
    refuse_second_derivatives,
    scaled_softmax_and_log_sum,
)
from annotrace.crowd.sums import sum_groups
from annotrace.crowd.traced_model import TracedModel


def fused_trace_regularized_nll(
    log_p: Tensor,
    layer: TracedModel,
    row: Tensor,
    annotator: Tensor,
    label: Tensor,
    lam: float,
    *,
    joint: bool,
) -> Tensor:
    """Compute the loss and the mean trace in one pass over the matrices.

    Parameters
    ----------
    log_p : Tensor of shape (n_rows, n_classes)
        Log-probabilities of the classes.
    layer, row, annotator, label, lam, joint
        As in `losses.trace_regularized_nll`.
    """
    if isinstance(layer, Confusion) and not layer.sparse:
        log_matrices = layer.log_matrices().to(log_p.dtype)
        return _TraceRegularizedNLL.apply(  # type: ignore[no-any-return,no-untyped-call]
            log_p, log_matrices, row, annotator, label, lam, joint
        )
    log_likelihood, traces = layer.log_likelihood_and_traces(annotator, label)
    mean_trace = torch.dot(traces, layer.trace_weights(annotator, len(log_p)))
    log_likelihood = log_likelihood.to(log_p.dtype)
    if joint:
        nll = _JointNLL.apply(log_p, log_likelihood, row)  # type: ignore[no-untyped-call]
    else:
        nll = mixture_log_likelihood(log_p, log_likelihood, row).sum() / -len(log_p)
    return torch.add(nll, mean_trace, alpha=lam)


class _JointNLL(torch.autograd.Function):
    """The likelihood of a row's labels taken together, mean over rows.

    Its gradient by log p, and by the log-likelihood of every label of the row, is the posterior.
    """

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, log_likelihood: Tensor, row: Tensor) -> Tensor:
        (by_row,) = sum_groups(log_likelihood, (row, len(log_p)))
        posterior, nll = scaled_softmax_and_log_sum(by_row.add_(log_p), -1 / len(log_p))
        ctx.save_for_backward(posterior, row)
        return nll

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        refuse_second_derivatives()
        posterior, row = ctx.saved_tensors
        by_row = posterior * grad
        return by_row, by_row.index_select(0, row), None


class _TraceRegularizedNLL(torch.autograd.Function):
    """The loss from the logarithms of all matrices.

    With q the posterior of a label's true class, the gradient of the likelihood by log p is q
    summed over the labels of a row, and that by log A the expected counts [annotator, true,
    reported]: the E-step and the M-step's sum. Labels taken together share their row's posterior.
    """

    @staticmethod
    def forward(
        ctx: Any,
        log_p: Tensor,
        log_matrices: Tensor,
        row: Tensor,
        annotator: Tensor,
        label: Tensor,
        lam: float,
        joint: bool,
    ) -> Tensor:
        n_rows, sizes = len(log_p), log_matrices.shape[:2]
        labels = LabelIndex(row, annotator, label, n_rows, *sizes) if joint else None
        if labels is None:
            log_joint = log_matrices[annotator, :, label].add_(log_p.index_select(0, row))
        else:
            log_joint = labels.sum_matrices(log_matrices, start=log_p)
        posterior, nll = scaled_softmax_and_log_sum(log_joint, -1 / n_rows)
        correct = log_matrices.diagonal(dim1=1, dim2=2).exp()
        ctx.save_for_backward(posterior, correct, row, annotator, label)
        ctx.n_rows, ctx.trace_weight, ctx.labels = n_rows, lam / len(log_matrices), labels
        return torch.add(nll, correct.sum(), alpha=ctx.trace_weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        posterior, correct, row, annotator, label = ctx.saved_tensors
        posterior = posterior * grad
        if ctx.labels is None:
            n_annotators, n_classes = correct.shape
            answers = torch.add(label, annotator, alpha=n_classes), correct.numel()
            by_row, by_answer = sum_groups(posterior, (row, ctx.n_rows), answers)
            counts = by_answer.view(n_annotators, n_classes, n_classes).transpose(1, 2)
        else:
            by_row, counts = posterior, ctx.labels.counts(posterior)
        counts.diagonal(dim1=1, dim2=2).addcmul_(correct, grad, value=ctx.trace_weight)
        return by_row, counts, None, None, None, None, None
