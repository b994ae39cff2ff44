"""Annotators as weights on the probabilities of a classifier, before a softmax.

Annotator r has a matrix of weights W^(r) of any sign. A softmax of the activations p(x) W^(r) is
the distribution of the label::

    p(label = j | x, r) = softmax_j (sum_i p(i | x) W^(r)[i, j])

For a class that is certain this is the softmax of a row of W^(r), so that a `Confusion` with the
parametrization "softmax" has the confusion matrices of such a layer. For others it differs from
`label_log_likelihood`, which averages the rows after their softmax.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.crowd.safe_math import at_least_float32


def activations(p: Tensor, weight: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
    """Return the activations p(x) W^(r) of each label's annotator, shape (n_labels, n_classes).

    Parameters
    ----------
    p : Tensor of shape (n_rows, n_classes)
        The classifier's probabilities.
    weight : Tensor of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    row, annotator : LongTensor of shape (n_labels,)
    """
    n_annotators, n_classes, _ = weight.shape
    if len(row) * n_classes >= len(p) * n_annotators:
        return union_activations(p, weight).view(len(p), -1, n_classes)[row, annotator]
    # Where most annotators have labelled few rows, the matrices of the labels are fewer numbers.
    matrices = F.embedding(annotator, weight.flatten(1)).view(-1, n_classes, n_classes)
    return (p[row][:, :, None] * matrices).sum(1)


def union_activations(p: Tensor, weight: Tensor) -> Tensor:
    """Return the activations of all annotators, shape (n_rows, n_annotators * n_classes).

    Parameters
    ----------
    p : Tensor of shape (n_rows, n_classes)
    weight : Tensor of shape (n_annotators, n_classes, n_classes)
    """
    with torch.autocast(p.device.type, enabled=False):
        return p @ weight.transpose(0, 1).flatten(1)


def activation_log_likelihood(
    logits: Tensor, weight: Tensor, row: Tensor, annotator: Tensor, label: Tensor
) -> Tensor:
    """Compute log p(label | x, annotator), the log-softmax of the activations, (n_labels,).

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
        The classifier's, in any float type.
    weight : Tensor of shape (n_annotators, n_classes, n_classes)
    row, annotator, label : LongTensor of shape (n_labels,)
        As in `label_log_likelihood`.
    """
    p = torch.softmax(at_least_float32(logits), dim=1)
    return log_softmax_at(activations(p, weight, row, annotator), label)


def log_softmax_at(scores: Tensor, label: Tensor) -> Tensor:
    """Return one column of the log-softmax of each row, shape (n_labels,).

    Parameters
    ----------
    scores : Tensor of shape (n_labels, n_classes)
    label : LongTensor of shape (n_labels,)
    """
    return F.log_softmax(scores, dim=1).gather(1, label[:, None]).squeeze(1)


def diagonal_of_identity(n_classes: int, scale: float = 1.0) -> float:
    """Return the probability of a correct label if the weights are `scale` times the identity."""
    return 1 / (1 + (n_classes - 1) * math.exp(-scale))
