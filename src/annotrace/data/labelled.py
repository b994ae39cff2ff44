"""Items with known true classes, for experiments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.vocabulary import Codes, Names


class LabelledSet(NamedTuple):
    """Items and their true classes.

    Attributes
    ----------
    X : ndarray of shape (n_items, ...)
    y : ndarray of shape (n_items,), int32
        The class of each item, an index into `classes`.
    classes : ndarray of shape (n_classes,)
    """

    X: NDArray[Any]
    y: Codes
    classes: Names

    def split(self, n_train: int, random_state: int = 0) -> tuple[LabelledSet, LabelledSet]:
        """Split at random into `n_train` items and the rest.

        The training items are the first `n_train` of
        ``numpy.random.default_rng(random_state).permutation(n_items)``.
        """
        if not 0 < n_train < len(self.y):
            raise InputError(
                f"Expected `n_train` to be from 1 to {len(self.y) - 1}, but got {n_train}."
            )
        order = np.random.default_rng(random_state).permutation(len(self.y))
        return self.take(order[:n_train]), self.take(order[n_train:])

    def take(self, positions: NDArray[np.int64]) -> LabelledSet:
        """Select items by position, in the given order."""
        return LabelledSet(self.X[positions], self.y[positions], self.classes)
