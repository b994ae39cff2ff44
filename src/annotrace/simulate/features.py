"""Features with a known Bayes accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from annotrace.errors import InputError
from annotrace.labels.codes import Seed

_MAX_DISTANCE = 12.0


def gaussian_features(
    truth: ArrayLike, n_classes: int, *, accuracy: float, random_state: Seed = None
) -> NDArray[np.float32]:
    """Draw features on which the Bayes classifier has a given accuracy.

    Each class is a Gaussian with unit variance whose mean is a multiple of the unit vector of the
    class, so that all classes are equally far apart. The accuracy assumes balanced classes.

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
            f"Expected `accuracy` to be above chance, 1 / {n_classes}, and below 1, but got "
            f"{accuracy}."
        )
    rng = np.random.default_rng(random_state)
    classes = np.asarray(truth)
    distance = brentq(lambda d: bayes_accuracy(d, n_classes) - accuracy, 0.0, _MAX_DISTANCE)
    noise = rng.normal(size=(len(classes), n_classes))
    features: NDArray[np.float32] = (distance * np.eye(n_classes)[classes] + noise).astype(
        np.float32
    )
    return features


def bayes_accuracy(distance: float, n_classes: int) -> float:
    """Return the accuracy of the Bayes classifier on Gaussians with means at `distance` from 0.

    It is the probability that the coordinate of the true class, Normal(distance, 1), exceeds all
    others, which are Normal(0, 1).
    """
    x = np.linspace(-8.0, distance + 8.0, 4001)
    density = np.exp(-0.5 * np.square(x - distance)) / np.sqrt(2 * np.pi)
    return float(np.trapezoid(density * ndtr(x) ** (n_classes - 1), x))
