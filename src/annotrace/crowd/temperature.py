r"""The temperature of a classifier, from labels of items that it did not learn from.

A classifier that was stopped early is too unsure, one that was not is too sure. Labels show it
without truth: T is what makes those of held-out items likeliest::

    sum_n log sum_i p_n(i)^(1/T) prod_r A[r, i, label]

That takes the right matrices. Those of a training have learned the noise of its labels, and are
surprised by others as if the classifier were too sure of itself. So matrices are counted anew, with
a Dirichlet prior that annotators share (`dirichlet`), and nothing is counted on held-out items.
Those are few, and people are wrong where the classifier is that learned from them: log T has a
normal prior around 0.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

from annotrace.aggregation.dirichlet import pool
from annotrace.aggregation.evidence import Evidence
from annotrace.labels.table import LabelTable

STEPS = 10
STARTING_STRENGTH = 5.0
WIDEST = float(np.log(10))

SPREAD = float(np.log(2) / 2)
"""Standard deviation of log T before any label is seen: it is hardly ever beyond 1/2 and 2."""


def fit_temperature(
    evidence: Evidence, logits: Tensor, labels: Tensor, spread: float = float("inf")
) -> tuple[float, float]:
    """Find the temperature at which labels are likeliest, and their loss at it.

    Parameters
    ----------
    evidence : Evidence
    logits : Tensor of shape (n_items, n_classes)
        What a classifier says that has not learned from these items.
    labels : Tensor of shape (n_items, n_classes)
        Log-likelihood of an item's labels under each class.
    spread : float
        Standard deviation of the prior of log T; there is none unless given.
    """

    def loss(log_temperature: float) -> float:
        log_p = torch.log_softmax(logits / float(np.exp(log_temperature)), 1)
        return -evidence.normalise(labels + log_p)[1] + (log_temperature / spread) ** 2 / 2

    found = minimize_scalar(
        loss, bounds=(-WIDEST, WIDEST), method="bounded", options={"xatol": 0.05}
    )
    return float(np.exp(found.x)), float(found.fun)


def held_out_temperature(
    table: LabelTable,
    gold: NDArray[np.int32],
    logits: Tensor,
    matrices: Tensor,
    held_out: NDArray[np.intp],
) -> float:
    """Find temperature and matrices that agree, the one by held-out items, the others by the rest.

    Parameters
    ----------
    table : LabelTable
    gold : ndarray of shape (n_items,)
        The known class of each item, -1 where it is not known.
    logits : Tensor of shape (n_items, n_classes)
    matrices : Tensor of shape (n_annotators, n_classes, n_classes)
        Where to begin.
    held_out : ndarray of shape (n_held_out,)
        Items that the classifier has not learned from.

    Returns
    -------
    float
        1 where held-out items have no labels.
    """
    judged = table.select_items(held_out)
    if judged.n_labels == 0:
        return 1.0
    evidence, judge = Evidence(table, gold), Evidence(judged, gold[held_out])
    logits = logits.to(evidence.dtype)
    columns = matrices.to(evidence.dtype).transpose(1, 2).clamp(min=1e-4)
    crowd = columns.mean(0, keepdim=True)
    prior = STARTING_STRENGTH * crowd / crowd.sum(1, keepdim=True)
    for _ in range(STEPS):
        labels = evidence.add_up(columns.log())
        temperature, _ = fit_temperature(judge, logits[held_out], labels[held_out], SPREAD)
        log_p = torch.log_softmax(logits / temperature, 1)
        posterior, _ = evidence.normalise(labels.add_(log_p))
        posterior[held_out] = 0
        counts = evidence.count(posterior)
        prior = pool(counts, prior)
        columns = (counts + prior) / (counts + prior).sum(1, keepdim=True)
    return temperature
