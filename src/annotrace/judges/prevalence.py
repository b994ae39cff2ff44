r"""The share of items of each class, corrected for the errors of those who labelled them.

Judges have labelled all items, and the class of some, drawn at random, is known. Two corrections:

- Rogan and Gladen (1978), for several classes: the shares r of the classes reported for items
  without gold are :math:`r = M^T \pi`, with M the confusion matrix on gold items; solve for
  :math:`\pi` and truncate. The interval is by the delta method. It stays valid if classes are
  more or less frequent among gold items than among the others.
- Prediction-powered: the share among gold items, corrected by what is reported for the others. It
  needs gold items drawn at random, and no matrix to be inverted; usually it is narrower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from annotrace.judges.accuracy import powered_share
from annotrace.judges.estimates import (
    UNKNOWN,
    Array,
    Estimate,
    normal_interval,
    share_estimate,
)
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

# Below it, the confusion matrix cannot be inverted: some class is never told from the others.
_LEAST_SINGULAR = 1e-6
# The p-value, for all classes together, below which gold items are said to be no random sample.
UNLIKELY = 0.001


class ClassShare(NamedTuple):
    """The share of items of one class.

    Attributes
    ----------
    source : str or int
        The judge whose labels are corrected, or "panel" for the votes of all.
    label : str or int
    reported : float
        The share of the labels, not corrected.
    gold : Estimate
        The share among gold items.
    rogan_gladen, prediction_powered : Estimate
    """

    source: Any
    label: Any
    reported: float
    gold: Estimate
    rogan_gladen: Estimate
    prediction_powered: Estimate


class Unlike(NamedTuple):
    """A class that judges report much more or less often for gold items than for the others."""

    label: Any
    gold: float
    others: float


def class_shares(table: LabelTable, known: Codes, source: Any) -> list[ClassShare]:
    """Return the corrected share of each class.

    Parameters
    ----------
    table : LabelTable
        Labels of one judge, or of several, whose shares of votes are corrected.
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others.
    source : str or int
        The name of the judge or panel.
    """
    reported, truth = _reported_shares(table, known)
    corrected = rogan_gladen(reported, truth)
    powered = prediction_powered_shares(reported, truth)
    is_gold = truth >= 0
    n_gold = int(is_gold.sum())
    by_class = np.bincount(truth[is_gold], minlength=table.n_classes) / max(n_gold, 1)
    return [
        ClassShare(
            source,
            name,
            float(reported[:, label].mean()) if len(reported) else float("nan"),
            share_estimate(by_class[label], n_gold),
            corrected[label],
            powered[label],
        )
        for label, name in enumerate(table.classes.tolist())
    ]


def find_unlike(table: LabelTable, known: Codes) -> Unlike | None:
    """Return the class in which gold items differ most from a random sample; None if in none.

    Parameters
    ----------
    table : LabelTable
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others.
    """
    reported, truth = _reported_shares(table, known)
    gold, others = reported[truth >= 0], reported[truth < 0]
    if min(len(gold), len(others)) < 2:
        return None
    difference = gold.mean(axis=0) - others.mean(axis=0)
    variance = gold.var(axis=0, ddof=1) / len(gold) + others.var(axis=0, ddof=1) / len(others)
    z = np.abs(difference) / np.sqrt(np.maximum(variance, 1e-12))
    if table.n_classes * 2 * ndtr(-z.max()) > UNLIKELY:
        return None
    label = int(z.argmax())
    share, other = float(gold[:, label].mean()), float(others[:, label].mean())
    return Unlike(table.classes.tolist()[label], share, other)


def _reported_shares(table: LabelTable, known: Codes) -> tuple[Array, Codes]:
    """Return the share of votes for each class and the known class, of items with labels."""
    n_labels = table.labels_per_item()
    labelled = np.flatnonzero(n_labels > 0)
    return table.votes()[labelled] / n_labels[labelled, None], known[labelled]


def prediction_powered_shares(reported: Array, truth: NDArray[Any]) -> list[Estimate]:
    """Return the prediction-powered share of each class.

    Parameters
    ----------
    reported : ndarray of shape (n_items, n_classes)
        The share of votes for each class; rows sum to one.
    truth : ndarray of int, shape (n_items,)
        The class of gold items, -1 for the others.
    """
    gold = truth >= 0
    if not gold.any():
        return [UNKNOWN] * reported.shape[1]
    return [
        powered_share(truth[gold] == label, predicted[gold], predicted[~gold])[0]
        for label, predicted in enumerate(reported.T)
    ]


def rogan_gladen(reported: Array, truth: NDArray[Any]) -> list[Estimate]:
    """Return the share of each class by inverting the confusion matrix on gold items.

    Parameters
    ----------
    reported, truth
        As in `prediction_powered_shares`. A class without gold items is assumed to be absent; the
        upper end of its interval is that of gold items alone.
    """
    n_classes = reported.shape[1]
    gold, rest = truth >= 0, reported[truth < 0]
    present = np.unique(truth[gold])
    if len(rest) == 0 or len(present) == 0:
        return [UNKNOWN] * n_classes
    solved = _solve([reported[truth == label] for label in present], rest)
    if solved is None:
        return [Estimate(float("nan"), 0.0, 1.0)] * n_classes
    share, error = solved
    truncated = np.clip(share, 0, None) / max(np.clip(share, 0, None).sum(), 1e-12)
    found = [share_estimate(0.0, int(gold.sum()))] * n_classes
    for place, label in enumerate(present):
        _, *ends = normal_interval(float(share[place]), float(error[place]))
        low, high = np.clip(ends, 0, 1).tolist()
        found[label] = Estimate(float(np.clip(truncated[place], low, high)), low, high)
    return found


def _solve(by_class: list[Array], rest: Array) -> tuple[Array, Array] | None:
    """Return the shares of classes and their standard errors; None if there is no solution.

    Parameters
    ----------
    by_class : list of ndarray of shape (n, n_classes)
        The reports for gold items of each class.
    rest : ndarray of shape (n_rest, n_classes)
        The reports for the other items.
    """
    means, covariances = zip(*map(_mean_of, by_class), strict=True)
    matrix = np.array(means)
    if np.linalg.svd(matrix, compute_uv=False)[-1] < _LEAST_SINGULAR:
        return None
    inverse = np.linalg.pinv(matrix.T)
    share = inverse @ rest.mean(axis=0)
    covariance = np.cov(rest.T, ddof=0).reshape(matrix.shape[1], -1) / len(rest)
    covariance = covariance + np.einsum("c,cij->ij", share**2, np.array(covariances))
    # Rounding may leave a variance of zero below it.
    return share, np.sqrt(np.maximum(np.diagonal(inverse @ covariance @ inverse.T), 0))


def _mean_of(reported: Array) -> tuple[Array, Array]:
    """Return the mean of rows and its covariance, with one row of equal shares added.

    Without that row, a few items that were all labelled correctly would show no variance.
    """
    n, n_classes = reported.shape
    rows = np.vstack([reported, np.full(n_classes, 1 / n_classes)])
    return reported.mean(axis=0), np.cov(rows.T, ddof=0).reshape(n_classes, n_classes) / n
