"""Handwritten digits of 8 x 8 pixels, included in scikit-learn."""

from __future__ import annotations

import numpy as np

from annotrace.data.labelled import LabelledSet


def load_digits(*, images: bool = False) -> LabelledSet:
    """Load the 1,797 digits; no download.

    The examples use ``load_digits().split(1400)``: 1,400 training and 397 test items.

    Parameters
    ----------
    images : bool
        Whether X has shape (1797, 8, 8) instead of (1797, 64).

    Returns
    -------
    LabelledSet
        X is float32 from 0 to 16.
    """
    from sklearn import datasets

    digits = datasets.load_digits()
    X = digits.images if images else digits.data
    return LabelledSet(X.astype(np.float32), digits.target.astype(np.int32), np.arange(10))
