"""Who reported what of which truth: the counts that everything about annotators rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from annotrace.labels.table import LabelTable


def report_matrix(table: LabelTable) -> csr_matrix:
    """Lay out labels as a sparse matrix (n_items, n_annotators * n_classes).

    Column ``annotator * n_classes + label`` is one answer of one annotator. Times rows of log
    probabilities it gives the log-likelihood of every item; transposed, times posteriors, it
    counts.
    """
    column = table.annotator.astype(np.int64) * table.n_classes + table.label
    shape = (table.n_items, table.n_annotators * table.n_classes)
    return csr_matrix((np.ones(table.n_labels), column, table.offsets), shape=shape)


def expected_counts(reports: csr_matrix, posterior: NDArray[Any]) -> NDArray[np.float64]:
    """Count who reported what, an item counting for each class by its probability.

    Parameters
    ----------
    reports : csr_matrix
        Of `report_matrix`.
    posterior : ndarray of shape (n_items, n_classes)

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    """
    n_classes = posterior.shape[1]
    counted = np.asarray(reports.T @ posterior.astype(np.float64, copy=False))
    return counted.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)


def drawn_counts(table: LabelTable, truth: NDArray[Any]) -> NDArray[np.int64]:
    """Count who reported what where the class of every item, (n_items,), is given.

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    n = table.n_classes
    cell = (table.annotator.astype(np.int64) * n + truth[table.item]) * n + table.label
    return np.bincount(cell, minlength=table.n_annotators * n * n).reshape(-1, n, n)


def label_scores(reports: csr_matrix, confusion: NDArray[Any]) -> NDArray[np.float64]:
    """Give the log-likelihood of each item's labels under every class, (n_items, n_classes).

    Parameters
    ----------
    reports : csr_matrix
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    """
    return scores_of(reports, log_columns(confusion))


def scores_of(reports: csr_matrix, columns: NDArray[Any]) -> NDArray[np.float64]:
    """Give `label_scores` where `log_columns` are there already."""
    return np.asarray(reports @ columns.reshape(-1, columns.shape[2]))


def log_columns(confusion: NDArray[Any]) -> NDArray[np.float64]:
    """Give log probabilities as [annotator, reported, true], none below log 1e-12."""
    transposed = np.ascontiguousarray(confusion.transpose(0, 2, 1), np.float64)
    columns: NDArray[np.float64] = np.log(np.maximum(transposed, 1e-12))
    return columns


def without_labels(
    posterior: NDArray[Any], reports: csr_matrix, confusion: NDArray[Any]
) -> NDArray[np.float64]:
    """Take the labels out of a posterior: what the classifier alone says of each item.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Classifier times likelihood of the labels under `confusion`.
    reports : csr_matrix
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Log probabilities, up to a constant for each item.
    """
    scores = np.log(np.maximum(posterior.astype(np.float64), 1e-300))
    return scores - label_scores(reports, confusion)


def normalised(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Turn log probabilities up to a constant into probabilities, row by row."""
    likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: NDArray[np.float64] = likelihood / likelihood.sum(axis=1, keepdims=True)
    return probabilities
