r"""What is known of those who can be asked: their confusion matrices.

The matrix of an annotator is counted from the posterior, under a prior that all share,
:math:`\pi_k \sim Dir(s m_k)`: its centre is the matrix of all labels together, and its strength s
(in labels) is read off how much annotators differ beyond what chance explains. With few labels a
matrix stays near the pool, so that nobody is preferred for luck; without any it *is* the pool's.
This holds for every method, whether it has matrices of its own or not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotrace.aggregation.evidence import Evidence
from annotrace.allocation.gain import Array
from annotrace.labels import LabelTable

# Labels that the pool counts for, at least and at most, whatever the annotators' differences.
WEAKEST, STRONGEST = 1.0, 1000.0
# Before any label, it is taken that people are right more often than not.
SMOOTHING, RIGHT = 0.1, 1.0


def pooled_matrices(table: LabelTable, posterior: Array, n_new: int = 0) -> Array:
    """Estimate the matrices of annotators, and of some of whom nothing is known.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    n_new : int
        Annotators without a label, numbered after those of the table.

    Returns
    -------
    ndarray of shape (n_annotators + n_new, n_classes, n_classes)
        [annotator, true, reported], the mean of the Dirichlet posterior; rows sum to one.
    """
    evidence = Evidence(table)
    counts = evidence.count(evidence.tensor(posterior)).numpy().transpose(0, 2, 1)
    counts = np.pad(counts.astype(np.float64), ((0, n_new), (0, 0), (0, 0)))
    centre = counts.sum(axis=0) + SMOOTHING + RIGHT * np.eye(table.n_classes)
    centre /= centre.sum(axis=1, keepdims=True)
    parameters = counts + pool_strength(counts, centre) * centre
    matrices: Array = parameters / parameters.sum(axis=2, keepdims=True)
    return matrices


def pool_strength(counts: NDArray[np.float64], centre: NDArray[np.float64]) -> float:
    r"""Tell how many labels the pool is worth, by the method of moments.

    Of n reports where the truth is k, the shares x differ from the centre m by
    :math:`E[n (x - m)^2] = m (1 - m) (1 + (n - 1) / (s + 1))`, added up over all annotators and
    classes.

    Parameters
    ----------
    counts : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    centre : ndarray of shape (n_classes, n_classes)
    """
    n = counts.sum(axis=2)
    shares = counts / np.maximum(n, 1)[:, :, None]
    spread = n * np.square(shares - centre).sum(axis=2) / (centre * (1 - centre)).sum(axis=1)
    counted = n >= 1
    # One degree of freedom a class goes into the centre.
    excess = (spread[counted] - 1).sum() + np.any(counted, axis=0).sum()
    alike = (n[counted] - 1).sum() / excess - 1 if excess > 0 else STRONGEST
    return float(np.clip(alike, WEAKEST, STRONGEST))
