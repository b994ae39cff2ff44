r"""How much a label is expected to tell of the truth of an item.

What is known of an item is a *joint* array of shape (n_reports, n_classes): the probability of
each combination of reports still to come (one row if none is planned) together with each true
class. Its *doubt* falls with every report, on average; by how much, is the gain of a label. Where
an annotator reports j of class i with probability :math:`A_{ij}`, their label turns a row p into
the rows :math:`p_i A_{ij}`, one for each j.

Three measures of doubt, each 0 where every row leaves one class only:

- *probability*: 1 - sum of p_i^2 / sum of p_i over rows, so that the gain is by how much the
  probability given to the true class is expected to rise;
- *information*: the entropy of the truth given the reports, so that the gain is the mutual
  information of label and truth, in nats;
- *accuracy*: the chance that the likeliest class is wrong; blind to a label that alone cannot turn
  the decision, though two of them may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Doubt: TypeAlias = Callable[[Array], Array]

TINY = 1e-300
# Classes that share less than this between them are left out of an item's joint array.
IMPLAUSIBLE = 1e-3
# Combinations of reports that are told apart; the rest, the least probable, count as one.
BRANCHES = 24


def probability(joint: Array) -> Array:
    """Give the expected probability of the classes that are not true, shape (...)."""
    total = joint.sum(axis=-1)
    settled = np.square(joint).sum(axis=-1) / np.maximum(total, TINY)
    return np.asarray((total - settled).sum(axis=-1))


def information(joint: Array) -> Array:
    """Give the entropy of the truth given the reports, in nats, shape (...)."""
    total = joint.sum(axis=-1)
    return np.asarray(_entropy(joint).sum(axis=-1).sum(axis=-1) - _entropy(total).sum(axis=-1))


def accuracy(joint: Array) -> Array:
    """Give the chance that the likeliest class is wrong, shape (...)."""
    return np.asarray((joint.sum(axis=-1) - joint.max(axis=-1)).sum(axis=-1))


CRITERIA: dict[str, Doubt] = {
    "probability": probability,
    "information": information,
    "accuracy": accuracy,
}


def plausible(posterior: Array) -> NDArray[np.intp]:
    """Name the likeliest classes, two at least, that leave out almost nothing, shape (k,)."""
    order = np.argsort(-posterior, kind="stable")
    enough = np.searchsorted(np.cumsum(posterior[order]), 1 - IMPLAUSIBLE) + 1
    return np.sort(order[: max(int(enough), 2)])


def after_report(joint: Array, matrices: Array) -> Array:
    """Give what is known of an item once some annotators, each alone, have labelled it.

    Parameters
    ----------
    joint : ndarray of shape (n_reports, k)
        Over the k plausible classes of the item.
    matrices : ndarray of shape (n_annotators, k, n_classes)
        [annotator, true, reported], the rows of these classes.

    Returns
    -------
    ndarray of shape (n_annotators, n_reports * n_classes, k)
    """
    reports = joint[None, :, None, :] * matrices.transpose(0, 2, 1)[:, None]
    return reports.reshape(len(matrices), -1, joint.shape[1])


def condense(joint: Array) -> Array:
    """Keep the most probable combinations of reports apart, and add up the rest in one row.

    Adding up rows is to forget which of them it was: the doubt can only be taken for larger.
    """
    if len(joint) <= BRANCHES:
        return joint
    order = np.argsort(-joint.sum(axis=1), kind="stable")
    rest = joint[order[BRANCHES:]].sum(axis=0, keepdims=True)
    return np.concatenate([joint[order[:BRANCHES]], rest])


def _entropy(probabilities: Array) -> Any:
    return -probabilities * np.log(np.maximum(probabilities, TINY))
