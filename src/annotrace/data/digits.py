"""Handwritten digits of 8 by 8 pixels, which come with scikit-learn."""

from __future__ import annotations

import numpy as np

from annotrace.data.labelled import LabelledSet


def load_digits(*, images: bool = False) -> LabelledSet:
    """Load the 1,797 digits; no download.

    The usual split here is ``load_digits().split(1400)``: 1,400 to train on, 397 to test.

    Parameters
    ----------
    images : bool
        Give X the shape (1797, 8, 8) instead of (1797, 64).

    Returns
    -------
    LabelledSet
        X is float32 from 0 to 16.
    """
    from sklearn import datasets

    digits = datasets.load_digits()
    X = digits.images if images else digits.data
    return LabelledSet(X.astype(np.float32), digits.target.astype(np.int32), np.arange(10))
