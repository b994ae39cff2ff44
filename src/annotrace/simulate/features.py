"""Features from which the class of an item can be told so often and no oftener."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from annotrace.errors import InputError
from annotrace.labels.codes import Seed

_FURTHEST = 12.0


def gaussian_features(
    truth: ArrayLike, n_classes: int, *, accuracy: float, random_state: Seed = None
) -> NDArray[np.float32]:
    """Draw features on which the best classifier there is has a given accuracy.

    Each class is a cloud of unit variance, and all are equally far from each other: class k is
    centred on a multiple of the k-th unit vector. Classes are taken to be equally common.

    Parameters
    ----------
    truth : array-like of int, shape (n_items,)
    n_classes : int
    accuracy : float
        Above 1 / n_classes and below 1.
    random_state : int, Generator or None

    Returns
    -------
    ndarray of shape (n_items, n_classes), float32
    """
    if not 1 / n_classes < accuracy < 1:
        raise InputError(
            f"Expected `accuracy` to be above 1 / n_classes and below 1, but got {accuracy} with "
            f"{n_classes} classes."
        )
    rng = np.random.default_rng(random_state)
    classes = np.asarray(truth)
    distance = brentq(lambda d: best_accuracy(d, n_classes) - accuracy, 0.0, _FURTHEST)
    noise = rng.normal(size=(len(classes), n_classes))
    features: NDArray[np.float32] = (distance * np.eye(n_classes)[classes] + noise).astype(
        np.float32
    )
    return features


def best_accuracy(distance: float, n_classes: int) -> float:
    """Give the accuracy of the best classifier on clouds whose centres are so far from 0.

    The right coordinate, Normal(distance, 1), must be the largest: the others, Normal(0, 1), must
    all lie below it.
    """
    at = np.linspace(-8.0, distance + 8.0, 4001)
    density = np.exp(-0.5 * np.square(at - distance)) / np.sqrt(2 * np.pi)
    return float(np.trapezoid(density * ndtr(at) ** (n_classes - 1), at))
