r"""What an item's other labels predict of a label, and what its features do.

Nothing but labels is needed to compare them. A label is predicted from the class that its item
probably has, and from its annotator's confusion matrix::

    p(label | other labels) = sum_i p(i | other labels) A[annotator, i, label]
    p(label | features)     = sum_i p(i | features)^(1/T) A[annotator, i, label]
"""

from __future__ import annotations

import torch
from torch import Tensor

from annotrace.labels.table import LabelTable

TEMPERATURES = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0)


def loss_given_other_labels(table: LabelTable, likelihood: Tensor, log_prior: Tensor) -> float:
    """Return the negative log-likelihood per label, each predicted from its item's others.

    Parameters
    ----------
    table : LabelTable
    likelihood : Tensor of shape (n_labels, n_classes)
        log p(label | true class, annotator).
    log_prior : Tensor of shape (n_classes,)
        Of the classes of an item without labels.
    """
    item = torch.tensor(table.item).long()
    total = likelihood.new_zeros(table.n_items, table.n_classes).index_add_(0, item, likelihood)
    others = log_prior + total[item] - likelihood
    return _loss(others.log_softmax(1), likelihood)


def loss_given_features(table: LabelTable, likelihood: Tensor, logits: Tensor) -> float:
    """Return the negative log-likelihood per label, each predicted from its item's features.

    Parameters
    ----------
    table, likelihood
        As in `loss_given_other_labels`.
    logits : Tensor of shape (n_items, n_classes)
        Of a classifier that has not learned from the item; the best of `TEMPERATURES` counts.
    """
    item = torch.tensor(table.item).long()
    return min(
        _loss((logits / temperature).log_softmax(1)[item], likelihood)
        for temperature in TEMPERATURES
    )


def _loss(log_p: Tensor, likelihood: Tensor) -> float:
    return -float((log_p + likelihood).logsumexp(1).mean(dtype=torch.float64))
