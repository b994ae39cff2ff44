"""Whether items of known truth contradict what was learned from labels alone.

Labels cannot show an error that a whole crowd makes alike; items of known truth can, if the fit has
not learned from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.calibration import share_interval
from annotrace.diagnosis.confidence import USUAL_ERROR, confidence


class Contradiction(NamedTuple):
    """Known truth against what was expected; `str` returns it in words.

    Attributes
    ----------
    n_items : int
        Items of known truth.
    accuracy, expected : float
        The share of them that is right, and the share expected from `confidence_`.
    """

    n_items: int
    accuracy: float
    expected: float

    @property
    def advice(self) -> str:
        """What to do about it."""
        return (
            "Look at items whose known class is not the estimated one: all annotators may make the "
            "same error, or the known classes answer another question. To learn from them, use "
            "--learn-truth or gold=."
        )

    def __str__(self) -> str:
        return (
            f"Items of known truth contradict the result: of {self.n_items:,} items, "
            f"{self.accuracy:.0%} are right, but {self.expected:.0%} were expected."
        )


def scoring_truth(result: CrowdResult) -> NDArray[np.int32]:
    """Return the true classes to score by, shape (n_items,): -1 if unknown or learned from."""
    truth = result.table.truth
    if truth is None:
        return np.full(result.table.n_items, -1, np.int32)
    return np.where(result.gold >= 0, np.int32(-1), truth)


def find_contradiction(result: CrowdResult) -> Contradiction | None:
    """Return whether significantly fewer items of known truth are right than expected.

    Returns
    -------
    Contradiction or None
        None if no truth is known, or if the difference is within chance and the usual error of
        confidence.
    """
    truth = scoring_truth(result)
    known = truth >= 0
    if not known.any():
        return None
    accuracy = float(np.mean(result.estimate[known] == truth[known]))
    expected = float(np.mean(confidence(result)[known]))
    _, high = share_interval(accuracy, int(known.sum()))
    if high >= expected - USUAL_ERROR:
        return None
    return Contradiction(int(known.sum()), accuracy, expected)
