"""How much accuracy is lost because confusion matrices are estimated, not known.

Matrices are drawn from their posterior. Under each draw the most probable class of an item is
compared with its estimated class: the mean difference between their probabilities is what knowing
the matrices would gain (the expected value of perfect information). Few labels per annotator, or
annotators among whom two opposite views fit the labels, give a large loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.em import posterior
from annotrace.crowd.result import CrowdResult
from annotrace.crowd.skills import AnnotatorPosterior, diagonals

Array = NDArray[np.float64]

N_DRAWS = 3
# Of items that are sampled, and of entries of the matrices of their annotators.
MAX_ITEMS, MAX_CELLS = 2000, 10**6


def estimation_loss(result: CrowdResult) -> float:
    """Return the expected loss of accuracy because confusion matrices are estimated.

    Parameters
    ----------
    result : CrowdResult
        Of a method that models annotators.
    """
    items = _sample_items(result)
    if len(items) == 0:
        return 0.0
    table = result.table.select_items(items)
    who, annotator = np.unique(table.annotator, return_inverse=True)
    prior = np.broadcast_to(result.prior, result.posterior.shape)[items]
    log_prior = torch.from_numpy(np.log(np.maximum(prior.astype(np.float64), 1e-9)))
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(N_DRAWS):
        matrices = draw_matrices(result.annotators, who, rng)
        log = np.log(np.maximum(matrices[annotator, :, table.label], 1e-12))
        by_item = np.add.reduceat(log, table.offsets[:-1], axis=0)
        drawn = posterior(log_prior, torch.from_numpy(by_item)).numpy()
        chosen = drawn[np.arange(len(items)), result.estimate[items]]
        losses.append(np.mean(drawn.max(axis=1) - chosen))
    return float(np.mean(losses))


def _sample_items(result: CrowdResult) -> NDArray[np.int64]:
    """Return items whose labels compare annotators and whose class is not gold."""
    usable = np.flatnonzero((result.table.labels_per_item() > 0) & (result.gold < 0))
    usable = usable[result.is_counted[usable]]
    labels_per_item = max(result.table.n_labels / max(result.table.n_items, 1), 1.0)
    # Each label may come from another annotator.
    most = int(MAX_CELLS / (labels_per_item * result.table.n_classes**2))
    n = min(len(usable), MAX_ITEMS, max(most, 10))
    return usable[np.linspace(0, len(usable) - 1, n).astype(np.int64)]


def draw_matrices(
    annotators: AnnotatorPosterior, who: NDArray[Any], rng: np.random.Generator
) -> Array:
    """Draw confusion matrices of some annotators from their posterior.

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    mean, variance = annotators.mean[who], diagonals(annotators.cell_variance(who))
    accuracy = np.clip(diagonals(mean), 1e-6, 1 - 1e-6)
    size = np.clip(accuracy * (1 - accuracy) / np.maximum(variance, 1e-12) - 1, 0.5, 1e9)
    right = rng.beta(accuracy * size, (1 - accuracy) * size)
    is_wrong = ~np.eye(mean.shape[1], dtype=bool)
    shares = mean * is_wrong / np.maximum((mean * is_wrong).sum(axis=2, keepdims=True), 1e-12)
    errors = rng.gamma(np.maximum(shares * annotators.error_counts[who][:, :, None], 1e-4))
    drawn: Array = (errors + 1e-12) * is_wrong
    drawn *= ((1 - right) / drawn.sum(axis=2))[:, :, None]
    place = np.arange(mean.shape[1])
    drawn[:, place, place] = right
    return drawn
