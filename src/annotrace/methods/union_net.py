"""UnionNet (Wei et al., "Deep learning from multiple noisy annotators as a union", TNNLS 2022).

The labels of an item by all annotators are one observation: their one-hot vectors, concatenated,
have n_annotators * n_classes entries. One transition matrix T maps the network's softmax p(x) to a
distribution over these entries, and the loss is the cross-entropy of the union::

    A:  u(x) = softmax(T p(x))
    B:  u(x) = softmax(T) p(x)              (a softmax of each column of T, one per true class)

    A:  1/N sum_n sum_{r labelled n} -log u(x_n)[r, label]
    B:  the same with the mean over the labels of an item in place of the sum

T starts as the identity for every annotator and learns at the network's rate. Because annotators
share one distribution, u also models who labels which class. Given who labels, the confusion matrix
of an annotator is the softmax of their part of each column, as in `CrowdLayer`. Held-out labels are
scored by their probability given who labels.

The cost of a step of A grows with the number of annotators for every item. B is the default, and
the variant that later papers compare with; use it where annotators are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.crowd.activations import union_activations
from annotrace.crowd.safe_math import at_least_float32, mixture_log_likelihood
from annotrace.crowd.sums import sum_groups
from annotrace.methods.crowd_layer import CrowdLayer
from annotrace.training import Batch


def union_log_likelihood_a(
    logits: Tensor, weight: Tensor, row: Tensor, annotator: Tensor, label: Tensor
) -> Tensor:
    """Compute log softmax(T p(x)) at the entry of each label, shape (n_labels,).

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
    weight : Tensor of shape (n_annotators, n_classes, n_classes)
        T as [annotator, true, reported].
    row, annotator, label : LongTensor of shape (n_labels,)
    """
    p = torch.softmax(at_least_float32(logits), dim=1)
    log_union = F.log_softmax(union_activations(p, weight), dim=1)
    return log_union[row, annotator * weight.shape[2] + label]


def union_log_likelihood_b(
    logits: Tensor, weight: Tensor, row: Tensor, annotator: Tensor, label: Tensor
) -> Tensor:
    """Compute log (softmax(T) p(x)) at the entry of each label, shape (n_labels,).

    Parameters
    ----------
    logits, weight, row, annotator, label
        As in `union_log_likelihood_a`.
    """
    log_transition = log_transitions(weight)[annotator, :, label]
    return mixture_log_likelihood(_log_p(logits), log_transition, row)


def log_transitions(weight: Tensor) -> Tensor:
    """Return the log-softmax of each true class over all reports of all annotators.

    Parameters
    ----------
    weight : Tensor of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    """
    n_classes = weight.shape[1]
    columns = F.log_softmax(weight.transpose(0, 1).flatten(1), dim=1)
    return columns.view(n_classes, -1, n_classes).transpose(0, 1)


def _log_p(logits: Tensor) -> Tensor:
    return F.log_softmax(at_least_float32(logits), dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class UnionNet(CrowdLayer):
    """A network and one transition matrix to the union of all annotators' labels.

    Parameters
    ----------
    variant : {"A", "B"}
        Whether the softmax is of the activations of the union, or of the transition matrix.
    confusion_lr : float
        Learning rate of the transition matrix as a multiple of the network's; 1 as published.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    variant: Literal["A", "B"] = "B"

    method: ClassVar[str] = "union-net"

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        labels = (batch.row, batch.annotator, batch.label)

        def label_loss(logits: Tensor) -> Tensor:
            if self.variant == "A":
                log_likelihood = union_log_likelihood_a(logits, self._layer.weight, *labels)
            else:
                log_likelihood = union_log_likelihood_b(logits, self._layer.weight, *labels)
                log_likelihood = log_likelihood / labels_of_item(batch.row, len(logits))
            return -log_likelihood.sum() / len(logits)

        return self._with_gold(batch, logits, label_loss)

    def _score(self, batch: Batch, logits: Tensor) -> tuple[Tensor, int]:
        if self.variant == "A":
            return super()._score(batch, logits)
        log_transition, log_p = log_transitions(self._layer.weight), _log_p(logits)
        reported = log_transition[batch.annotator, :, batch.label]
        labelled = log_transition.logsumexp(2)[batch.annotator]
        joint = mixture_log_likelihood(log_p, reported, batch.row)
        return (mixture_log_likelihood(log_p, labelled, batch.row) - joint).sum(), len(batch.label)


def labels_of_item(row: Tensor, n_rows: int) -> Tensor:
    """Return for each label the number of labels of its item in the batch, shape (n_labels,)."""
    (counts,) = sum_groups(torch.ones(len(row), 1, device=row.device), (row, n_rows))
    return counts[row, 0]
