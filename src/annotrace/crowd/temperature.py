r"""The temperature of a classifier, from labels of items that it did not learn from.

A classifier that was stopped early is underconfident, one that was not is overconfident. Labels
show it without truth: T maximises the likelihood of those of held-out items::

    sum_n log sum_i p_n(i)^(1/T) prod_r A[r, i, label]

That needs the right matrices. Those of the training have learned the noise of its labels, and are
surprised by others as if the classifier were overconfident. So matrices are counted again, with a
Dirichlet prior that annotators share (`dirichlet`), and nothing is counted on held-out items. Those
are few, and annotators are wrong where the classifier is that learned from them: log T has a normal
prior around 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.dirichlet import initial_pool, update_pool
from annotrace.crowd.em import item_log_likelihood, matrices_from_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.safe_math import log_normalize
from annotrace.labels.table import LabelTable

N_ITER = 10
LARGEST_LOG = float(np.log(10))

SPREAD = float(np.log(2) / 2)
"""Standard deviation of the prior of log T: T is hardly ever outside 1/2 to 2."""


def fit_temperature(
    problem: CrowdProblem, logits: Tensor, likelihood: Tensor, spread: float = float("inf")
) -> tuple[float, float]:
    """Return the temperature at which labels are most likely, and their loss at it.

    Parameters
    ----------
    problem : CrowdProblem
    logits : Tensor of shape (n_items, n_classes)
        Of a classifier that has not learned from these items.
    likelihood : Tensor of shape (n_items, n_states)
        Log-likelihood of each item's labels given each class, or class and level of difficulty:
        state s is of class ``s % n_classes``.
    spread : float
        Standard deviation of the prior of log T; no prior by default.
    """

    def loss(log_temperature: float) -> float:
        log_joint = _tempered_joint(logits, likelihood, np.exp(log_temperature))
        return (log_temperature / spread) ** 2 / 2 - problem.log_evidence(log_joint)

    return _minimize(loss)


def _minimize(loss: Callable[[float], float]) -> tuple[float, float]:
    """Return the temperature at which a function of its logarithm is least, and its value there."""
    from scipy.optimize import minimize_scalar

    bounds = (-LARGEST_LOG, LARGEST_LOG)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.05})
    return float(np.exp(found.x)), float(found.fun)


def match_temperature(problem: CrowdProblem, logits: Tensor, target: Tensor) -> float:
    """Return the temperature at which the cross-entropy of class probabilities is least.

    Parameters
    ----------
    problem : CrowdProblem
        Items without labels and gold class do not count.
    logits, target : Tensor of shape (n_items, n_classes)
    """

    def loss(log_temperature: float) -> float:
        log_p = log_normalize(logits / float(np.exp(log_temperature)))
        return -float(problem.total((target * log_p).sum(1, keepdim=True)))

    return _minimize(loss)[0]


def tempered_e_step(
    problem: CrowdProblem, logits: Tensor, likelihood: Tensor, temperature: float
) -> tuple[Tensor, float]:
    """Return the posterior of states under a classifier at some temperature, and the log evidence.

    Parameters are those of `fit_temperature`.
    """
    return problem.e_step(_tempered_joint(logits, likelihood, temperature))


def _tempered_joint(logits: Tensor, likelihood: Tensor, temperature: float) -> Tensor:
    log_p = log_normalize(logits / float(temperature))
    n_levels = likelihood.shape[1] // logits.shape[1]
    return log_p.repeat(1, n_levels).add_(likelihood)


def held_out_temperature(
    table: LabelTable,
    gold: NDArray[np.int32],
    logits: Tensor,
    matrices: Tensor,
    held_out: NDArray[np.intp],
) -> float:
    """Return the temperature by held-out items, given matrices counted on the others.

    Parameters
    ----------
    table : LabelTable
    gold : ndarray of shape (n_items,)
        The class of each gold item, -1 elsewhere.
    logits : Tensor of shape (n_items, n_classes)
    matrices : Tensor of shape (n_annotators, n_classes, n_classes)
        Where to start.
    held_out : ndarray of shape (n_held_out,)
        Items that the classifier has not learned from.

    Returns
    -------
    float
        1 if held-out items have no labels.
    """
    held_out_table = table.select_items(held_out)
    if held_out_table.n_labels == 0:
        return 1.0
    problem, judge = CrowdProblem(table, gold), CrowdProblem(held_out_table, gold[held_out])
    logits = logits.to(problem.dtype)
    matrices = matrices.to(problem.dtype).clamp(min=1e-4)
    prior = initial_pool(matrices)
    for _ in range(N_ITER):
        likelihood = problem.labels.sum_matrices(matrices.log())
        temperature, _ = fit_temperature(judge, logits[held_out], likelihood[held_out], SPREAD)
        posterior, _ = tempered_e_step(problem, logits, likelihood, temperature)
        posterior[held_out] = 0
        counts = problem.counts(posterior)
        prior = update_pool(counts, prior)
        matrices = matrices_from_counts(counts, prior)
    return temperature


def held_out_temperature_of(
    model: AnnotatorModel,
    table: LabelTable,
    gold: NDArray[np.int32],
    logits: Tensor,
    held_out: NDArray[np.intp],
) -> float:
    """Return the temperature by held-out items, given an annotator model as it is.

    For structures whose matrices are too many to count. They have few parameters, and so have
    learned less of the noise of labels.

    Parameters
    ----------
    model : AnnotatorModel
    table, gold, logits, held_out
        As in `held_out_temperature`.
    """
    held_out_table = table.select_items(held_out)
    if held_out_table.n_labels == 0:
        return 1.0
    judge = CrowdProblem(held_out_table, gold[held_out])
    likelihood = torch.from_numpy(item_log_likelihood(model, held_out_table)).to(judge.dtype)
    return fit_temperature(judge, logits[held_out].to(judge.dtype), likelihood, SPREAD)[0]
