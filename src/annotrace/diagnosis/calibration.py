"""Calibration: of the items with confidence .9, nine in ten should be right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.beta_interval import TWO_SIDED_90
from annotrace.errors import InputError


class Reliability(NamedTuple):
    """Bins of items ordered by confidence; arrays of shape (n_bins,).

    Attributes
    ----------
    confidence : ndarray
        Mean confidence.
    accuracy : ndarray
        Share of items whose most probable class is right.
    n_items : ndarray of int
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    n_items: NDArray[np.int64]


def reliability_curve(
    posterior: NDArray[Any],
    truth: NDArray[Any],
    n_bins: int = 10,
    confidence: NDArray[Any] | None = None,
) -> Reliability:
    """Compare confidence with accuracy in bins of equally many items.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
    truth : ndarray of int, shape (n_items,)
        The class of each item, -1 if unknown: such items are ignored.
    n_bins : int
        At most the number of items.
    confidence : ndarray of shape (n_items,), optional
        Probability of the most probable class; its posterior by default.
    """
    known = truth >= 0
    if not np.any(known):
        raise InputError(
            "Expected items of known truth to compare confidence with, but there are none."
        )
    confidence = (posterior.max(axis=1) if confidence is None else confidence)[known]
    right = posterior[known].argmax(axis=1) == truth[known]
    order = np.argsort(confidence, kind="stable")
    bins = np.array_split(order, min(n_bins, len(order)))
    return Reliability(
        np.array([confidence[own].mean() for own in bins]),
        np.array([right[own].mean() for own in bins]),
        np.array([len(own) for own in bins]),
    )


def calibration_error(
    posterior: NDArray[Any],
    truth: NDArray[Any],
    n_bins: int = 10,
    confidence: NDArray[Any] | None = None,
) -> float:
    """Return the expected calibration error in bins of equally many items; 0 is perfect.

    The distance between confidence and accuracy, averaged over items. Parameters are those of
    `reliability_curve`.
    """
    curve = reliability_curve(posterior, truth, n_bins, confidence)
    apart = np.abs(curve.confidence - curve.accuracy)
    return float(np.average(apart, weights=curve.n_items))


def share_interval(share: Any, n: Any) -> tuple[Any, Any]:
    """Return the 90 % interval of a proportion (Wilson's), which stays within 0 and 1.

    Parameters
    ----------
    share : float or ndarray
        The observed proportion.
    n : int or ndarray
        The number of observations.
    """
    z2 = TWO_SIDED_90**2 / n
    centre = (share + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
