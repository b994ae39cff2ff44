"""The pool: the average annotator, who stands for annotators without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.annotator_model import AnnotatorModel


def pooled_confusion(confusion: NDArray[Any], n_labels: NDArray[Any]) -> NDArray[Any]:
    """Return the mean confusion matrix, annotators weighted by their labels.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    n_labels : ndarray of shape (n_annotators,)

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
    """
    pool: NDArray[Any] = np.average(confusion, axis=0, weights=n_labels)
    return pool


def pooled_matrix(model: AnnotatorModel, n_labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean confusion matrix of a model, annotators weighted by their labels.

    No array of all matrices is made.

    Parameters
    ----------
    model : AnnotatorModel
    n_labels : ndarray of shape (n_annotators,)

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
    """
    weight = torch.from_numpy(n_labels / n_labels.sum())
    parts = [
        torch.tensordot(weight[who.cpu()], model.matrices(who).cpu().double(), 1)
        for who in model.blocks()
    ]
    pool: NDArray[np.float64] = torch.stack(parts).sum(0).numpy()
    return pool


def fill_unlabelled(confusion: NDArray[Any], n_labels: NDArray[Any]) -> NDArray[Any]:
    """Return matrices in which annotators without labels have the pool's.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    n_labels : ndarray of shape (n_annotators,)

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    if np.all(n_labels > 0):
        return confusion
    labelled = (n_labels > 0)[:, None, None]
    return np.where(labelled, confusion, pooled_confusion(confusion, n_labels))
