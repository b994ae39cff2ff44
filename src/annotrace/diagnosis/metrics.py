"""How good an estimate is, where the truth is known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

# By how much the trace of a better naming is larger: below that it is chance.
PERMUTED = 0.1


def skills(confusion: NDArray[Any]) -> NDArray[Any]:
    """Give the mean diagonal of each matrix, shape (n_annotators,)."""
    mean_diagonal: NDArray[Any] = np.diagonal(confusion, axis1=1, axis2=2).mean(axis=1)
    return mean_diagonal


def confusion_error(estimate: NDArray[Any], truth: NDArray[Any]) -> float:
    """Give the paper's error of confusion matrices.

    The squared Frobenius distance divided by the number of classes, mean over annotators: 0 is
    perfect. Tables print it times 100.

    Parameters
    ----------
    estimate, truth : ndarray of shape (n_annotators, n_classes, n_classes)
    """
    return float(np.square(estimate - truth).sum(axis=(1, 2)).mean() / truth.shape[1])


def dominance_margins(mean_confusion: NDArray[Any]) -> NDArray[Any]:
    """Tell by how much the right class leads among those reported under each name.

    The paper's condition of diagonal dominance compares, in the layout [true, reported], the
    diagonal with its *column*: items of class i are called i more often than those of any other
    class are.

    Parameters
    ----------
    mean_confusion : ndarray of shape (n_classes, n_classes)
        The mean over annotators.

    Returns
    -------
    ndarray of shape (n_classes,)
        ``mean[i, i] - max(mean[k, i] for k != i)``; dominant where above 0.
    """
    others = mean_confusion - np.diag(np.full(len(mean_confusion), np.inf))
    margins: NDArray[Any] = np.diagonal(mean_confusion) - others.max(axis=0)
    return margins


def is_diagonally_dominant(confusion: NDArray[Any]) -> bool:
    """Tell whether the mean of some matrices (n_annotators, n_classes, n_classes) is dominant."""
    return bool(np.all(dominance_margins(confusion.mean(axis=0)) > 0))


def dominant_draws(
    draw: Callable[[int], NDArray[Any]],
    n_draws: int,
    first_seed: int = 0,
    tries: int | None = None,
) -> list[tuple[int, NDArray[Any]]]:
    """Draw groups of annotators until so many have a diagonally dominant mean matrix.

    Seeds are tried in order from `first_seed`, and the first that qualify are taken.

    Parameters
    ----------
    draw : callable
        From a seed to matrices of shape (n_annotators, n_classes, n_classes).
    n_draws, first_seed : int
    tries : int, optional
        Seeds to try at most, where it is not certain that so many draws qualify.

    Returns
    -------
    list of (seed, matrices)
        Fewer than `n_draws` where `tries` ran out.
    """
    draws: list[tuple[int, NDArray[Any]]] = []
    for seed in count(first_seed) if tries is None else range(first_seed, first_seed + tries):
        if len(draws) == n_draws:
            break
        matrices = draw(seed)
        if is_diagonally_dominant(matrices):
            draws.append((seed, matrices))
    return draws


def pooled_confusion(confusion: NDArray[Any], n_labels: NDArray[Any]) -> NDArray[Any]:
    """Give the matrix of the crowd: the mean over annotators, each counting by its labels.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    n_labels : ndarray of shape (n_annotators,)

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
    """
    pool: NDArray[Any] = np.average(confusion, axis=0, weights=n_labels)
    return pool


def with_pool(confusion: NDArray[Any], n_labels: NDArray[Any]) -> NDArray[Any]:
    """Give annotators without a label the matrix of the crowd: they may be anybody.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    n_labels : ndarray of shape (n_annotators,)

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    if np.all(n_labels > 0):
        return confusion
    known = (n_labels > 0)[:, None, None]
    return np.where(known, confusion, pooled_confusion(confusion, n_labels))


def is_permuted(mean_confusion: NDArray[Any]) -> bool:
    """Tell whether classes have changed names: another naming of the rows fits the reports better.

    Among solutions that explain the labels equally well the true one has the largest trace, so a
    strong penalty on the trace ends at one whose classes have swapped names.

    Parameters
    ----------
    mean_confusion : ndarray of shape (n_classes, n_classes)
        [true, reported].
    """
    _, best = linear_sum_assignment(mean_confusion, maximize=True)
    named_right = np.diagonal(mean_confusion).sum()
    return bool(mean_confusion[np.arange(len(best)), best].sum() > named_right + PERMUTED)


class PerClass(NamedTuple):
    """Figures of each class, arrays of shape (n_classes,); NaN where there is nothing to count.

    Attributes
    ----------
    recall : ndarray
        Of the items of a class, how many are found.
    precision : ndarray
        Of the items given to a class, how many belong there.
    n_items : ndarray of int
        Items of each class.
    """

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    n_items: NDArray[np.int64]


def per_class(predicted: NDArray[Any], truth: NDArray[Any], n_classes: int) -> PerClass:
    """Give recall and precision of every class.

    Parameters
    ----------
    predicted, truth : ndarray of int, shape (n_items,)
        Items of unknown truth (-1) are left out.
    n_classes : int
    """
    known = truth >= 0
    right = np.bincount(truth[known & (predicted == truth)], minlength=n_classes)
    n_items = np.bincount(truth[known], minlength=n_classes)
    n_given = np.bincount(predicted[known], minlength=n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return PerClass(right / n_items, right / n_given, n_items)


def balanced_accuracy(predicted: NDArray[Any], truth: NDArray[Any], n_classes: int) -> float:
    """Give the mean recall of the classes that occur: common classes count no more than rare."""
    return float(np.nanmean(per_class(predicted, truth, n_classes).recall))
