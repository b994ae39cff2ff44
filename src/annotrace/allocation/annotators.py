r"""What is known of those who can be asked: their matrices, and from how many labels.

The matrix of an annotator is counted from the posterior, under a prior that all share,
:math:`\pi_k \sim Dir(\alpha_k)`, whose centre and strength are learned from all of them. With few
labels a matrix stays near the pool, so that nobody is preferred for luck; without any it *is* the
pool's. This holds for every method, whether it has matrices of its own or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.aggregation.dirichlet import pool
from annotrace.aggregation.evidence import Evidence
from annotrace.labels import LabelTable

POOL_STEPS = 50


def pooled_matrices(table: LabelTable, posterior: NDArray[Any], n_new: int = 0) -> NDArray[Any]:
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
    counts = evidence.count(evidence.tensor(posterior)).double()
    alpha = (0.5 + 2 * torch.eye(table.n_classes, dtype=torch.float64))[None]
    labelled = counts[torch.from_numpy(table.labels_per_annotator() > 0)]
    for _ in range(POOL_STEPS):
        alpha = pool(labelled, alpha)
    parameters = torch.cat([counts + alpha, alpha.expand(n_new, -1, -1)])
    means = parameters / parameters.sum(1, keepdim=True)
    return np.ascontiguousarray(means.transpose(1, 2).numpy())
