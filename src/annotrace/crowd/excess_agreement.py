"""How much more two annotators agree than the true class of the item explains.

For two labels of an item, the posterior of the item from its *other* labels and the two confusion
matrices predict how likely the labels are to agree. If annotators err independently given the true
class, they agree as often as predicted; more agreement means that the answer of one predicts that
of the other beyond the class, which is to say that they share errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.em import normalize_joint
from annotrace.crowd.label_pairs import LabelPairs
from annotrace.labels.table import LabelTable

Array = NDArray[np.float64]

# Entries of the matrices that are compared, in all and at a time.
MAX_CELLS, BLOCK_CELLS = 10**8, 2**20


def max_comparisons(n_classes: int) -> int:
    """Return how many pairs of labels can be compared at moderate cost."""
    return MAX_CELLS // n_classes**2


class Comparison(NamedTuple):
    """Pairs of labels against what is predicted of them; arrays of shape (n_pairs,).

    All are weighted by how certain the other labels of the item are about its class: the errors of
    annotators show where the class is known.

    Attributes
    ----------
    excess, scale : ndarray
        Excess agreement, and what to divide it by to obtain a correlation; for two classes it is
        that of the errors.
    errors, error_scale : ndarray
        Product of the two errors less their expectations, if the class that is most probable by
        the other labels is the true one, and the product of their standard deviations.
    """

    excess: Array
    scale: Array
    errors: Array
    error_scale: Array


def compare_pairs(
    table: LabelTable, matrices: Array, item_posterior: NDArray[Any], pairs: LabelPairs
) -> Comparison:
    """Compare pairs of labels with what the item's other labels predict of them.

    Parameters
    ----------
    table : LabelTable
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
    item_posterior : ndarray of shape (n_items, n_classes)
        Under these matrices.
    pairs : LabelPairs
    """
    spread = np.sqrt(np.maximum(1 - np.square(matrices).sum(axis=2), 0))
    block = max(BLOCK_CELLS // table.n_classes**2, 1)
    parts = [
        _compare(table, matrices, spread, item_posterior, pairs.take(start, start + block))
        for start in range(0, max(len(pairs.first), 1), block)
    ]
    return Comparison(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _compare(
    table: LabelTable,
    matrices: Array,
    spread: Array,
    item_posterior: NDArray[Any],
    pairs: LabelPairs,
) -> Comparison:
    one, other = (table.annotator[rows] for rows in pairs)
    said = [table.label[rows] for rows in pairs]
    by_others = without_labels(
        item_posterior[table.item[pairs.first]],
        matrices[one, :, said[0]] * matrices[other, :, said[1]],
    )
    agreement = np.einsum("nkl,nkl->nk", matrices[one], matrices[other])
    predicted = (by_others * agreement).sum(axis=1)
    scale = (by_others * spread[one] * spread[other]).sum(axis=1)
    by_chance = 1 / table.n_classes
    certainty = (by_others.max(axis=1) - by_chance) / (1 - by_chance)
    errors, error_scale = certainty.copy(), certainty.copy()
    true = by_others.argmax(axis=1)
    for annotator, label in zip((one, other), said, strict=True):
        accuracy = matrices[annotator, true, true]
        errors *= (label != true) - (1 - accuracy)
        error_scale *= np.sqrt(accuracy * (1 - accuracy))
    excess = certainty * ((said[0] == said[1]) - predicted)
    return Comparison(excess, certainty * scale, errors, error_scale)


def without_labels(posterior: NDArray[Any], likelihood: Array) -> Array:
    """Take labels of some likelihood out of posteriors, both of shape (n, n_classes)."""
    posterior = np.asarray(posterior, np.float64)
    log = np.log(np.maximum(posterior, 1e-30)) - np.log(np.maximum(likelihood, 1e-24))
    return normalize_joint(torch.from_numpy(log))[0].numpy()
