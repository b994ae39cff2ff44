"""Quality of an estimate if the truth is known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# A permutation whose trace is larger by less than this may be chance.
PERMUTED = 0.1


def confusion_error(estimate: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the paper's error of confusion matrices.

    The squared Frobenius distance divided by the number of classes, averaged over annotators: 0 is
    perfect. Tables print it times 100.

    Parameters
    ----------
    estimate, truth : ndarray of shape (n_annotators, n_classes, n_classes)
    """
    return float(np.square(estimate - truth).sum(axis=(1, 2)).mean() / truth.shape[1])


def dominance_margins(mean_confusion: NDArray[Any]) -> NDArray[Any]:
    """Return the margin by which the right class leads among those reported under each name.

    The paper's condition of diagonal dominance compares, in the layout [true, reported], the
    diagonal with its *column*: items of class i are labelled i more often than items of any other
    class are.

    Parameters
    ----------
    mean_confusion : ndarray of shape (n_classes, n_classes)
        The mean over annotators.

    Returns
    -------
    ndarray of shape (n_classes,)
        ``mean[i, i] - max(mean[k, i] for k != i)``; dominant if above 0.
    """
    others = mean_confusion - np.diag(np.full(len(mean_confusion), np.inf))
    margins: NDArray[Any] = np.diagonal(mean_confusion) - others.max(axis=0)
    return margins


def is_diagonally_dominant(confusion: NDArray[Any]) -> bool:
    """Whether the mean of matrices (n_annotators, n_classes, n_classes) is diagonally dominant."""
    return bool(np.all(dominance_margins(confusion.mean(axis=0)) > 0))


def dominant_draws(
    draw: Callable[[int], NDArray[Any]], n_draws: int, first_seed: int = 0, tries: int | None = None
) -> list[tuple[int, NDArray[Any]]]:
    """Draw groups of annotators until `n_draws` have a diagonally dominant mean matrix.

    Seeds are tried in order from `first_seed`; the first that qualify are returned.

    Parameters
    ----------
    draw : callable
        From a seed to matrices of shape (n_annotators, n_classes, n_classes).
    n_draws, first_seed : int
    tries : int, optional
        Maximum number of seeds, if so many qualifying draws may not exist.

    Returns
    -------
    list of (seed, matrices)
        Fewer than `n_draws` if `tries` ran out.
    """
    draws: list[tuple[int, NDArray[Any]]] = []
    for seed in count(first_seed) if tries is None else range(first_seed, first_seed + tries):
        if len(draws) == n_draws:
            break
        matrices = draw(seed)
        if is_diagonally_dominant(matrices):
            draws.append((seed, matrices))
    return draws


def best_assignment(mean_confusion: NDArray[Any]) -> NDArray[np.int64]:
    """Return the reported class that fits each true class best, no class twice, (n_classes,).

    Parameters
    ----------
    mean_confusion : ndarray of shape (n_classes, n_classes)
        [true, reported].
    """
    own = np.arange(len(mean_confusion))
    errors = mean_confusion.astype(np.float64)
    errors[own, own] = -np.inf
    if np.all(np.diagonal(mean_confusion) > errors.max(axis=1)):
        return own
    # It takes longer to import than all of a small report, and is needed for a bad crowd only.
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(mean_confusion, maximize=True)[1], np.int64)


def is_permuted(mean_confusion: NDArray[Any]) -> bool:
    """Whether class names are permuted: another naming of the rows fits the reports better.

    Among solutions that explain the labels equally well the true one has the largest trace, so that
    a strong trace penalty ends in one with swapped names.

    Parameters
    ----------
    mean_confusion : ndarray of shape (n_classes, n_classes)
        [true, reported].
    """
    best = best_assignment(mean_confusion)
    named_right = np.diagonal(mean_confusion).sum()
    return bool(mean_confusion[np.arange(len(best)), best].sum() > named_right + PERMUTED)


class PerClass(NamedTuple):
    """Metrics of each class, arrays of shape (n_classes,); NaN if there are no items.

    Attributes
    ----------
    recall : ndarray
        Share of the items of a class that are found.
    precision : ndarray
        Share of the items assigned to a class that belong there.
    n_items : ndarray of int
        Items of each class.
    """

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    n_items: NDArray[np.int64]


def per_class(predicted: NDArray[Any], truth: NDArray[Any], n_classes: int) -> PerClass:
    """Return recall and precision of every class.

    Parameters
    ----------
    predicted, truth : ndarray of int, shape (n_items,)
        Items of unknown truth (-1) are ignored.
    n_classes : int
    """
    known = truth >= 0
    right = np.bincount(truth[known & (predicted == truth)], minlength=n_classes)
    n_items = np.bincount(truth[known], minlength=n_classes)
    n_given = np.bincount(predicted[known], minlength=n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return PerClass(right / n_items, right / n_given, n_items)


def balanced_accuracy(predicted: NDArray[Any], truth: NDArray[Any], n_classes: int) -> float:
    """Return the mean recall of the classes that occur."""
    return float(np.nanmean(per_class(predicted, truth, n_classes).recall))
