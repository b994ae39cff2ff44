"""Intervals of shares from a mean and a variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Array = NDArray[np.float64]

TWO_SIDED_90 = 1.645
"""Standard errors on either side of a mean in its 90 % interval."""


def beta_interval(mean: NDArray[Any], variance: NDArray[Any], level: float) -> tuple[Array, Array]:
    """Return the central intervals of Beta distributions with some means and variances.

    Parameters
    ----------
    mean, variance : ndarray
    level : float
        Between 0 and 1.
    """
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    size = np.clip(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1e-3, 1e9)
    # Cells and annotators with few labels are often equal, and a quantile takes a microsecond.
    distinct, place = np.unique(mean * size + 1j * (1 - mean) * size, return_inverse=True)
    ends = ((1 - level) / 2, (1 + level) / 2)
    quantiles = (betaincinv(distinct.real, distinct.imag, end) for end in ends)
    low, high = (np.asarray(quantile, np.float64) for quantile in quantiles)
    return low[place].reshape(mean.shape), high[place].reshape(mean.shape)
