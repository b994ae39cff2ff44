"""How sure to be of an item, where people make mistakes together.

The posterior of a model takes mistakes for independent: given the class of an item, what one
annotator says tells nothing of what another says. Real annotators are misled by the same items,
and a classifier that learned from them is misled with them. Nothing in the labels can show it: a
class that everybody takes for another looks like that other. So what is usual has to be assumed:

- labels of one item are worth less than as many of different items: evidence is divided by the
  *design effect* of samples that hang together, 1 + `DEPENDENCE` x labels;
- a share `SHARED` of the crowd's mistakes is made by all: what looks like class j is truly class i
  as often as that share of the crowd's matrix says.

Both numbers are from eleven public crowds with known truth (docs/trust.md): without them the mean
calibration error is .092, with them .059.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.metrics import pooled_confusion
from annotrace.labels.table import LabelTable

DEPENDENCE = 0.3
SHARED = 0.3


def calibrated_confidence(
    table: LabelTable, posterior: NDArray[Any], confusion: NDArray[Any]
) -> NDArray[np.float64]:
    """Give the probability that the likeliest class of each item is right.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)

    Returns
    -------
    ndarray of shape (n_items,)
    """
    n_labels = table.labels_per_item()[:, None]
    apparent = tempered(posterior, 1 / (1 + DEPENDENCE * n_labels))
    crowd = pooled_confusion(confusion, table.labels_per_annotator())
    true = apparent @ class_behind(crowd, posterior.mean(axis=0)).T
    likeliest: NDArray[np.float64] = true[np.arange(len(true)), posterior.argmax(axis=1)]
    return likeliest


def tempered(posterior: NDArray[Any], power: NDArray[Any]) -> NDArray[np.float64]:
    """Raise probabilities (n_items, n_classes) to a power for each item, and normalise."""
    scores = power * np.log(np.maximum(posterior.astype(np.float64), 1e-300))
    likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: NDArray[np.float64] = likelihood / likelihood.sum(axis=1, keepdims=True)
    return probabilities


def class_behind(crowd: NDArray[Any], common: NDArray[Any]) -> NDArray[np.float64]:
    """Give how often each class is behind what looks like another, if mistakes are shared.

    Parameters
    ----------
    crowd : ndarray of shape (n_classes, n_classes)
        The crowd's matrix [true, reported].
    common : ndarray of shape (n_classes,)
        How common classes are.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        [true, apparent], columns sum to one.
    """
    looks_like = (1 - SHARED) * np.eye(len(crowd)) + SHARED * crowd
    joint = np.maximum(common, 1e-12)[:, None] * looks_like
    behind: NDArray[np.float64] = joint / joint.sum(axis=0)
    return behind
