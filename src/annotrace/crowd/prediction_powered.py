r"""Prediction-powered estimates: a few known values correct many predicted ones.

Predictions f are known for all N + n observations, the true values y for n of them. The mean of y
is estimated by

.. math::

    \hat\theta = \lambda \bar f_N + \overline{(y - \lambda f)}_n

whose interval is valid however wrong the predictions are (Angelopoulos et al., Prediction-powered
inference, 2023). With :math:`\lambda` = 0 it is the mean of the known values; the :math:`\lambda`
of least variance makes it at most as wide, in the limit (PPI++, 2023).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]


class MeanEstimate(NamedTuple):
    """A mean with its interval.

    Attributes
    ----------
    value, low, high : float
    weight : float
        How far predictions are used: 0 is the mean of the known values alone.
    """

    value: float
    low: float
    high: float
    weight: float


def prediction_powered_mean(
    known: ArrayLike, predicted: ArrayLike, predicted_rest: ArrayLike, level: float = 0.9
) -> MeanEstimate:
    """Estimate a mean from n known values and predictions of all.

    Parameters
    ----------
    known, predicted : array-like of shape (n,)
        True values and predictions of the same observations.
    predicted_rest : array-like of shape (n_rest,)
        Predictions of observations whose values are unknown.
    level : float
        Of the interval, between 0 and 1.

    Examples
    --------
    >>> estimate = prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0, 1, 0, 1, 0])
    >>> round(estimate.value, 3), round(estimate.weight, 3)
    (0.632, 0.471)
    """
    y, f, rest = (np.asarray(values, np.float64) for values in (known, predicted, predicted_rest))
    weight = _least_variance_weight(y, f, rest)
    error = y - weight * f
    value = float(error.mean() + (weight * rest.mean() if weight else 0.0))
    variance = error.var() / len(y) + (weight**2 * rest.var() / len(rest) if weight else 0.0)
    half = float(ndtri((1 + level) / 2) * np.sqrt(variance))
    return MeanEstimate(value, value - half, value + half, weight)


def _least_variance_weight(y: Array, f: Array, rest: Array) -> float:
    """Return the weight of predictions with the least variance of the estimate, 0 to 1."""
    if len(rest) == 0:
        return 0.0
    variance: Any = np.concatenate([f, rest]).var(ddof=1)
    if variance == 0:
        return 0.0
    covariance = np.mean((y - y.mean()) * (f - f.mean()))
    return float(np.clip(covariance / ((1 + len(y) / len(rest)) * variance), 0, 1))
