"""Estimates with 90 % intervals, and rows of them as frames.

Intervals of shares are Wilson's, which are valid for few observations and shares near 0 or 1. An
estimate that is not a plain share of n observations (several labels of one item, predictions that
correct a share) is treated as a share of so many observations as would have its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from annotrace.diagnosis.calibration import share_interval

Array = NDArray[np.float64]

LEVEL = 0.9
_Z = float(ndtri((1 + LEVEL) / 2))


class Estimate(NamedTuple):
    """A value with its 90 % interval; all NaN if nothing is known."""

    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return bool(np.isfinite(self.value))

    def scaled(self, factor: float, shift: float = 0.0) -> Estimate:
        """Return ``factor * estimate + shift``, for a factor of at least 0."""
        return Estimate(*(factor * part + shift for part in self))


UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"))


def share_estimate(value: float, n: float, variance: float | None = None) -> Estimate:
    """Return a share with its interval.

    Parameters
    ----------
    value : float
    n : float
        Number of independent observations, if `variance` is None or the share is 0 or 1.
    variance : float, optional
        Of the estimate; it determines the number of observations.

    Examples
    --------
    >>> [round(part, 3) for part in share_estimate(1.0, 10)]
    [1.0, 0.787, 1.0]
    """
    if n <= 0:
        return UNKNOWN
    value = float(np.clip(value, 0, 1))
    if variance is not None and variance > 0 and 0 < value < 1:
        n = value * (1 - value) / variance
    low, high = share_interval(value, n)
    # Rounding may leave an end of the interval of 0 or 1 beside it.
    return Estimate(value, min(float(low), value), max(float(high), value))


def normal_interval(value: float, error: float) -> Estimate:
    """Return an estimate from its standard error."""
    return Estimate(value, value - _Z * error, value + _Z * error)


def interval_variance(low: float, high: float) -> float:
    """Return the variance of a normal estimate with a 90 % interval."""
    return ((high - low) / (2 * _Z)) ** 2


def ratio_variance(part: Array, whole: Array, cluster: NDArray[Any]) -> float:
    """Return the variance of ``part.sum() / whole.sum()`` over independent clusters.

    Parameters
    ----------
    part, whole : ndarray of shape (n,)
    cluster : ndarray of int, shape (n,)
        Observations of one cluster, such as an item, depend on each other.
    """
    total = whole.sum()
    residual = np.bincount(cluster, part - part.sum() / total * whole)
    n = np.count_nonzero(np.bincount(cluster, whole))
    return float(np.square(residual).sum() / total**2 * n / max(n - 1, 1))


def difference_estimate(difference: ArrayLike, inflation: float = 1.0) -> Estimate:
    """Return the mean of paired differences between -1 and 1 with its interval.

    Half a pair is added to each kind of pair (both right, both wrong, one of them right), so that
    the interval has a width even if no pair differs (Agresti and Min, Simple improved confidence
    intervals for comparing matched proportions, 2005).

    Parameters
    ----------
    difference : array-like of shape (n,)
    inflation : float
        Of the variance, for differences that are not independent.
    """
    given = np.asarray(difference, np.float64)
    if len(given) == 0:
        return UNKNOWN
    n = len(given) + 2
    centre = given.sum() / n
    variance = (np.square(given).sum() + 1) / n - centre**2
    half = _Z * np.sqrt(inflation * variance / n)
    return Estimate(float(given.mean()), float(centre - half), float(centre + half))


def flatten_row(row: Any) -> dict[str, Any]:
    """Return the fields of a named tuple by name; an `Estimate` as name, name_low, name_high.

    Names in a tuple are joined by commas, and NaN is None.
    """
    flat: dict[str, Any] = {}
    for name, value in row._asdict().items():
        if isinstance(value, Estimate):
            ends = (name, f"{name}_low", f"{name}_high")
            flat |= {end: _none_if_nan(part) for end, part in zip(ends, value, strict=True)}
        elif isinstance(value, tuple):
            flat[name] = ", ".join(map(str, value))
        else:
            flat[name] = _none_if_nan(value)
    return flat


def frame_of(rows: Sequence[Any]) -> Any:
    """Return named tuples as a polars frame, one row each; without rows it has no columns."""
    import polars as pl

    frame = pl.DataFrame([flatten_row(row) for row in rows], infer_schema_length=None)
    # A column without values would have no type.
    return frame.cast({name: pl.Float64 for name, kind in frame.schema.items() if kind == pl.Null})


def _none_if_nan(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
