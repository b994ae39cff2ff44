"""Intervals of Beta distributions, given by their means and variances."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates, spline_filter
from scipy.special import betaincinv, expit, log_expit, logit

# From so many quantiles on a table is made first: 100,000 annotators of ten classes have ten
# million cells, which take half a minute one by one.
_MANY = 200_000
# The table: log-odds of the quantile by log-odds of the mean and log of a + b. Between its points
# cubic splines are within 1e-5 of the quantile; below a + b = 1, where they are not, it is unused.
_STEP, _FIRST_ODDS, _FIRST_LOG_SIZE = 0.2, -21.0, -3.0
_LEAST_SIZE, _LARGEST_SIZE = 1e-3, 1e9
_MOST_ODDS = 25.0


def beta_interval(
    mean: NDArray[Any], variance: NDArray[Any], level: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give the central interval of Beta distributions with some means and variances.

    Parameters
    ----------
    mean, variance : ndarray
    level : float
        Between 0 and 1.
    """
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    size = mean * (1 - mean) / np.maximum(variance, 1e-12) - 1
    size = np.clip(size, _LEAST_SIZE, _LARGEST_SIZE)
    quantile = _tabled if mean.size >= _MANY else _exact
    low, high = (quantile(mean, size, end) for end in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def _exact(mean: NDArray[Any], size: NDArray[Any], end: float) -> NDArray[Any]:
    return np.asarray(betaincinv(mean * size, (1 - mean) * size, end))


def _tabled(mean: NDArray[Any], size: NDArray[Any], end: float) -> NDArray[Any]:
    odds = (logit(mean) - _FIRST_ODDS) / _STEP
    log_size = (np.log(size) - _FIRST_LOG_SIZE) / _STEP
    place = np.stack([odds, log_size])
    found = map_coordinates(_table(end), place, order=3, prefilter=False, mode="nearest")
    quantiles: NDArray[Any] = expit(found)
    outside = size < 1
    quantiles[outside] = _exact(mean[outside], size[outside], end)
    return quantiles


@cache
def _table(end: float) -> NDArray[np.float64]:
    """Give the spline's coefficients, shape (n_odds, n_log_sizes)."""
    odds = np.arange(_FIRST_ODDS, -_FIRST_ODDS + _STEP, _STEP)[:, None]
    log_size = np.arange(_FIRST_LOG_SIZE, np.log(_LARGEST_SIZE) + 2 * _STEP, _STEP)
    a, b = np.exp(log_expit(odds) + log_size), np.exp(log_expit(-odds) + log_size)
    quantile, rest = betaincinv(a, b, end), betaincinv(b, a, 1 - end)
    tiny = np.finfo(float).tiny
    log_odds = np.log(np.maximum(quantile, tiny)) - np.log(np.maximum(rest, tiny))
    return np.asarray(spline_filter(log_odds.clip(-_MOST_ODDS, _MOST_ODDS), 3, mode="nearest"))
