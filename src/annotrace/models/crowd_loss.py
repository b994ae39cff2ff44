"""The likelihood of labels by many annotators, and the paper's loss."""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.errors import InputError
from annotrace.models.confusion import Confusion, check_whole_numbers
from annotrace.models.safe_math import (
    at_least_float32,
    mixture_log_likelihood,
    refuse_second_derivatives,
    scaled_softmax_and_log_sum,
)
from annotrace.models.sayings import Sayings
from annotrace.models.sums import add_up


class HasColumns(Protocol):
    """Anything that knows p(label | true class) for an annotator: a `Confusion`, say."""

    def log_columns(self, annotator: Tensor, label: Tensor) -> Tensor:
        """Give the log-probability of each label under each true class."""
        ...


def label_log_likelihood(
    logits: Tensor, layer: HasColumns, row: Tensor, annotator: Tensor, label: Tensor
) -> Tensor:
    """Compute log p(label | x) for each label, shape (n_labels,).

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
        What the classifier says of the true class; any float type, worked on in float32 or more.
    layer : Confusion
        Or anything with its `log_columns`.
    row, annotator, label : LongTensor of shape (n_labels,)
        The row of `logits` that each label belongs to, who gave it, and what it says. Missing
        labels are left out; on a GPU, where to look would be to wait, -1 is not found out.
    """
    _check_labels(row, annotator, label)
    log_columns = layer.log_columns(annotator, label)
    _check_logits(logits, log_columns.shape[1])
    log_p = F.log_softmax(at_least_float32(logits), dim=-1)
    return mixture_log_likelihood(log_p, log_columns.to(log_p.dtype), row)


def crowd_nll(
    logits: Tensor, layer: HasColumns, row: Tensor, annotator: Tensor, label: Tensor
) -> Tensor:
    """Compute the cross-entropy of the labels, summed over the labels of a row, mean over rows.

    As in the paper's listing, the sum is divided by the rows of the batch, labelled or not; but
    nothing is clipped, so that its gradient never vanishes.

    Parameters
    ----------
    logits, layer, row, annotator, label
        As in `label_log_likelihood`.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> layer = Confusion(n_annotators=2, n_classes=2)
    >>> row, annotator, label = torch.tensor([[0, 0, 1], [0, 1, 1], [0, 1, 1]])
    >>> crowd_nll(logits, layer, row, annotator, label).item()  # doctest: +ELLIPSIS
    1.27...
    """
    _check_rows(logits)
    return label_log_likelihood(logits, layer, row, annotator, label).sum() / -len(logits)


def trace_regularized_nll(
    logits: Tensor,
    layer: Confusion,
    row: Tensor,
    annotator: Tensor,
    label: Tensor,
    lam: float,
    *,
    joint: bool = False,
) -> Tensor:
    """Compute the paper's loss: `crowd_nll` plus `lam` times the mean trace over annotators.

    Both come from one pass over the matrices: all of them, or those of the batch where the layer
    is sparse.

    Parameters
    ----------
    logits, layer, row, annotator, label
        As in `label_log_likelihood`.
    lam : float
    joint : bool
        Take the labels of a row together, -log sum_i p_i prod_r A[r, i, label], and not, as the
        paper does, each by itself. There is no difference where rows have one label.
    """
    _check_labels(row, annotator, label)
    _check_logits(logits, layer.n_classes)
    _check_rows(logits)
    log_p = F.log_softmax(at_least_float32(logits), dim=-1)
    if not layer.sparse:
        log_matrices = layer.log_matrices().to(log_p.dtype)
        return _TraceRegularizedNLL.apply(  # type: ignore[no-any-return,no-untyped-call]
            log_p, log_matrices, row, annotator, label, lam, joint
        )
    log_columns, traces = layer.log_columns_and_traces(annotator, label)
    mean_trace = torch.dot(traces, layer.trace_shares(annotator, len(logits)))
    log_columns = log_columns.to(log_p.dtype)
    if joint:
        (evidence,) = add_up(log_columns, (row, len(log_p)))
        log_likelihood = torch.logsumexp(log_p + evidence, dim=-1)
    else:
        log_likelihood = mixture_log_likelihood(log_p, log_columns, row)
    return torch.add(log_likelihood.sum() / -len(logits), mean_trace, alpha=lam)


def _check_logits(logits: Tensor, n_classes: int) -> None:
    """Refuse what torch would broadcast."""
    if logits.dim() != 2 or logits.shape[1] != n_classes:
        raise InputError(
            f"Expected logits of shape (n_rows, {n_classes}), but got {tuple(logits.shape)}."
        )


def _check_rows(logits: Tensor) -> None:
    """Refuse a mean over nothing."""
    if len(logits) == 0:
        raise InputError(
            f"Expected logits of at least one row, but got the shape {tuple(logits.shape)}."
        )


def _check_labels(row: Tensor, annotator: Tensor, label: Tensor) -> None:
    """Refuse what torch would broadcast, or count from the end; nothing here waits for a GPU."""
    shapes = [tuple(part.shape) for part in (row, annotator, label)]
    if row.dim() != 1 or len(set(shapes)) > 1:
        raise InputError(
            "Expected row, annotator and label of one length, a number each for every label, but "
            f"got the shapes {shapes[0]}, {shapes[1]} and {shapes[2]}."
        )
    check_whole_numbers(row=row, annotator=annotator, label=label)
    if label.device.type != "cpu" or len(label) == 0 or torch.compiler.is_compiling():
        return
    for name, part in (("annotator", annotator), ("label", label)):
        if part.min() < 0:
            raise InputError(
                f"Expected {name} to be numbers from 0 on, but got {int(part.min())}. Leave out "
                "labels that are missing."
            )


class _TraceRegularizedNLL(torch.autograd.Function):
    """The loss from the logarithms of all matrices, with its gradient in closed form.

    With q the posterior of a label's true class, the likelihood's gradient by log p is q summed
    over the labels of a row, and that by log A is q summed over the labels that say the same by the
    same annotator: the counts [annotator, true, reported] that are expected. Labels taken together
    share the posterior of their row.

    By plain autograd it took 63 kernels more than cross-entropy on a GPU, where a step on a small
    network is the cost of its hundred kernels.
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
        sayings = Sayings(row, annotator, label, n_rows, *sizes) if joint else None
        if sayings is None:
            scores = log_matrices[annotator, :, label].add_(log_p.index_select(0, row))
        else:
            scores = sayings.evidence(log_p, log_matrices)
        expected, nll = scaled_softmax_and_log_sum(scores, -1 / n_rows)
        right = log_matrices.diagonal(dim1=1, dim2=2).exp()
        ctx.save_for_backward(expected, right, row, annotator, label)
        ctx.n_rows, ctx.trace_share, ctx.sayings = n_rows, lam / len(log_matrices), sayings
        return torch.add(nll, right.sum(), alpha=ctx.trace_share)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        expected, right, row, annotator, label = ctx.saved_tensors
        expected = expected * grad
        if ctx.sayings is None:
            n_annotators, n_classes = right.shape
            said = torch.add(label, annotator, alpha=n_classes), right.numel()
            by_row, by_saying = add_up(expected, (row, ctx.n_rows), said)
            counts = by_saying.view(n_annotators, n_classes, n_classes).transpose(1, 2)
        else:
            by_row, counts = expected, ctx.sayings.counts(expected)
        counts.diagonal(dim1=1, dim2=2).addcmul_(right, grad, value=ctx.trace_share)
        return by_row, counts, None, None, None, None, None


def posterior(log_p: Tensor, log_columns: Tensor, row: Tensor) -> Tensor:
    """Combine the classifier and the labels: p(true class | x, labels), shape (n_rows, n_classes).

    Parameters
    ----------
    log_p : Tensor of shape (n_rows, n_classes)
    log_columns : Tensor of shape (n_labels, n_classes)
    row : LongTensor of shape (n_labels,)
    """
    check_whole_numbers(row=row)
    if log_columns.shape != (len(row), log_p.shape[1]):
        raise InputError(
            f"Expected `log_columns` to be of shape {(len(row), log_p.shape[1])}, one row a label, "
            f"but got {tuple(log_columns.shape)}."
        )
    (evidence,) = add_up(log_columns.to(log_p.dtype), (row, len(log_p)))
    return F.softmax(log_p + evidence, dim=-1)
