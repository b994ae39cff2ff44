"""Whether items of known truth bear out what was learned from labels alone.

Labels cannot show a mistake that a whole crowd makes alike; items of known truth can, where they
were not learned from. Of eleven public crowds one is caught: hitspam_crowdflower, where 100
items were said to be right for certain, and 66 are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.calibration import share_interval
from annotrace.diagnosis.confidence import USUAL_ERROR
from annotrace.labels.table import LabelTable


class Contradiction(NamedTuple):
    """Known truth against what was expected; `str` says it in words.

    Attributes
    ----------
    n_items : int
        Items of known truth.
    right, expected : float
        The share of them that is right, and that was to be expected.
    """

    n_items: int
    right: float
    expected: float

    @property
    def advice(self) -> str:
        """What to do about it."""
        return (
            "Look at items whose known class is not the estimated one: all may make one mistake, "
            "or the known classes answer another question. To learn from them: --learn-truth, or "
            "gold=."
        )

    def __str__(self) -> str:
        return (
            f"Items of known truth say otherwise: of {self.n_items:,}, {self.right:.0%} are right, "
            f"where {self.expected:.0%} was to be expected."
        )


def contradiction(
    table: LabelTable, estimate: NDArray[Any], confidence: NDArray[Any]
) -> Contradiction | None:
    """Tell whether fewer items of known truth are right than was to be expected, beyond doubt.

    Parameters
    ----------
    table : LabelTable
        Without the truth that was learned from.
    estimate : ndarray of int, shape (n_items,)
        The class given to each item.
    confidence : ndarray of shape (n_items,)
        How sure it was.

    Returns
    -------
    Contradiction or None
        None where no truth is known, or the difference is within chance and the usual error of
        confidence.
    """
    if table.truth is None or not (known := table.truth >= 0).any():
        return None
    right = float(np.mean(estimate[known] == table.truth[known]))
    expected = float(np.mean(confidence[known]))
    _, high = share_interval(right, int(known.sum()))
    if high >= expected - USUAL_ERROR:
        return None
    return Contradiction(int(known.sum()), right, expected)
