"""The two steps of EM that everything about annotators is made of.

E-step: the posterior of each item's class, from what is known without its labels and from the
likelihood of its labels. M-step: the expected counts of reports by true class, and the confusion
matrices that follow from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.safe_math import softmax_and_log_sum
from annotrace.labels.table import LabelTable


def posterior(log_prior: Tensor, item_log_likelihood: Tensor) -> Tensor:
    """Return p(true class | labels) of each item, shape (n_items, n_classes).

    Parameters
    ----------
    log_prior : Tensor of shape (n_items, n_classes) or (n_classes,)
        What is known without the item's labels: a classifier's log-probabilities, or the class
        shares.
    item_log_likelihood : Tensor of shape (n_items, n_classes)
        Of the item's labels given each class; see `AnnotatorModel.item_log_likelihood`.

    Examples
    --------
    >>> posterior(torch.tensor([0.5, 0.5]).log(), torch.tensor([[0.9, 0.1]]).log())
    tensor([[0.9000, 0.1000]])
    """
    return normalize_joint(item_log_likelihood + log_prior)[0]


def normalize_joint(log_joint: Tensor) -> tuple[Tensor, Tensor]:
    """Return the posterior of each item and the log-likelihood of its labels.

    Parameters
    ----------
    log_joint : Tensor of shape (n_items, n_states)
        log p(class, labels), the sum of log prior and log-likelihood; overwritten.

    Returns
    -------
    posterior : Tensor of shape (n_items, n_states)
    log_evidence : Tensor of shape (n_items,)
        log p(labels).
    """
    return softmax_and_log_sum(log_joint)


def clamp_to_gold(log_joint: Tensor, gold: NDArray[np.int32], n_classes: int) -> Tensor:
    """Rule out the other classes of gold items, in place, and return `log_joint`.

    Parameters
    ----------
    log_joint : Tensor of shape (n_items, n_states)
        State s is of class ``s % n_classes``.
    gold : ndarray of int, shape (n_items,)
        The class of each gold item, -1 elsewhere.
    n_classes : int
    """
    items = np.flatnonzero(gold >= 0)
    if len(items):
        other = np.arange(log_joint.shape[1]) % n_classes != gold[items, None]
        log_joint[items] = log_joint[items].masked_fill(torch.from_numpy(other), -torch.inf)
    return log_joint


def clamp_posterior(posterior: NDArray[Any], gold: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities (n_items, n_classes) that are certain for gold items."""
    items = np.flatnonzero(gold >= 0)
    if len(items) == 0:
        return posterior
    clamped = posterior.copy()
    clamped[items] = np.eye(posterior.shape[1])[gold[items]]
    return clamped


def expected_counts(posterior: NDArray[Any], table: LabelTable | LabelIndex) -> NDArray[np.float64]:
    """Count reports by true class, each item weighted by its posterior.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
    table : LabelTable or LabelIndex

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    """
    labels = LabelIndex.from_table(table) if isinstance(table, LabelTable) else table
    weights = torch.from_numpy(np.ascontiguousarray(posterior, np.float64))
    counts: NDArray[np.float64] = labels.counts(weights).numpy()
    return counts


def matrices_from_counts(counts: Tensor, prior: Tensor | float = 0.0) -> Tensor:
    """Return counts plus prior counts as distributions over reports, shape of `counts`.

    Parameters
    ----------
    counts : Tensor of shape (..., n_classes)
        [annotator, true, reported], for example.
    prior : Tensor or float
        Parameters of a Dirichlet prior, or one number for every cell (smoothing).
    """
    counts = counts + prior
    return counts / counts.sum(-1, keepdim=True)


@torch.no_grad()
def item_log_likelihood(model: AnnotatorModel, table: LabelTable) -> NDArray[np.float64]:
    """Return the log-likelihood of each item's labels, shape (n_items, n_classes), in float64."""
    labels = LabelIndex.from_table(table, device=model.device)
    log_likelihood: NDArray[np.float64] = model.item_log_likelihood(labels).cpu().double().numpy()
    return log_likelihood
