"""The likelihood of labels by many annotators, and the paper's loss."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.models.confusion import Confusion
from annotrace.models.safe_math import at_least_float32, mixture_log_likelihood


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
        The row of `logits` that each label belongs to, who gave it, and what it says.
    """
    log_p = F.log_softmax(at_least_float32(logits), dim=-1)
    return mixture_log_likelihood(log_p, layer.log_columns(annotator, label).to(log_p.dtype), row)


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
    return label_log_likelihood(logits, layer, row, annotator, label).sum() / -len(logits)


def trace_regularized_nll(
    logits: Tensor, layer: Confusion, row: Tensor, annotator: Tensor, label: Tensor, lam: float
) -> Tensor:
    """Compute the paper's loss: `crowd_nll` plus `lam` times the mean trace over annotators.

    Both come from one pass over the matrices: all of them, or those of the batch where the layer
    is sparse.
    """
    log_p = F.log_softmax(at_least_float32(logits), dim=-1)
    if layer.sparse:
        log_columns, traces = layer.log_columns_and_traces(annotator, label)
        mean_trace = torch.dot(traces, layer.trace_shares(annotator, len(logits)))
    else:
        log_matrices = layer.log_matrices()
        log_columns = log_matrices[annotator, :, label]
        mean_trace = log_matrices.diagonal(dim1=1, dim2=2).exp().sum(1).mean()
    log_likelihood = mixture_log_likelihood(log_p, log_columns.to(log_p.dtype), row)
    return torch.add(log_likelihood.sum() / -len(logits), mean_trace, alpha=lam)


def posterior(log_p: Tensor, log_columns: Tensor, row: Tensor) -> Tensor:
    """Combine the classifier and the labels: p(true class | x, labels), shape (n_rows, n_classes).

    Parameters
    ----------
    log_p : Tensor of shape (n_rows, n_classes)
    log_columns : Tensor of shape (n_labels, n_classes)
    row : LongTensor of shape (n_labels,)
    """
    return F.softmax(log_p.index_add(0, row, log_columns.to(log_p.dtype)), dim=-1)
