r"""How much a label is expected to tell of the truth of an item.

What is known of an item is a *joint* array of shape (n_rows, n_classes): the probability of each
combination of reports still to come (one row where none is planned) together with each true class.
The probability that will be given to the true class is expected to be

.. math:: S = \sum_{rows} \frac{\sum_i p_i^2}{\sum_i p_i}.

A label by someone who reports j of class i with probability :math:`A_{ij}` turns a row p into the
rows :math:`p_i A_{ij}`, one for each j, and S never falls by that. By how much it rises is the gain
of the label; 1 - S is the doubt, and more than any label can gain.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

TINY = 1e-300
# Combinations of reports that are told apart; the rest, the least probable, count as one.
ROWS_APART = 24


def settled(joint: Array) -> Array:
    """Give what each row adds to the probability of the true class, shape (...).

    Parameters
    ----------
    joint : ndarray of shape (..., n_classes)
    """
    shares: Array = np.square(joint).sum(axis=-1) / np.maximum(joint.sum(axis=-1), TINY)
    return shares


def after_report(joint: Array, matrix: Array) -> Array:
    """Give what is known of an item once one annotator has labelled it.

    Parameters
    ----------
    joint : ndarray of shape (n_rows, n_classes)
    matrix : ndarray of shape (n_classes, n_classes)
        [true, reported].

    Returns
    -------
    ndarray of shape (rows, n_classes)
        The most probable combinations of reports, and the others added up in one row: not to tell
        these apart can only make the doubt look larger.
    """
    rows = (joint[:, None, :] * matrix.T).reshape(-1, joint.shape[1])
    if len(rows) <= ROWS_APART:
        return rows
    order = np.argsort(-rows.sum(axis=1), kind="stable")
    rest = rows[order[ROWS_APART:]].sum(axis=0, keepdims=True)
    return np.concatenate([rows[order[:ROWS_APART]], rest])


class Reports:
    """What all annotators may report, laid out so that a product compares them all at once.

    Parameters
    ----------
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    """

    def __init__(self, matrices: Array) -> None:
        self.n_annotators, n_classes, _ = matrices.shape
        self._chances = np.ascontiguousarray(matrices.transpose(1, 0, 2)).reshape(n_classes, -1)
        self._squares = np.square(self._chances)

    @property
    def width(self) -> int:
        """Number of reports that there may be: annotators times classes."""
        return self._chances.shape[1]

    def gains(self, joint: Array) -> Array:
        """Give what a label by each annotator adds to each row of `settled`.

        Parameters
        ----------
        joint : ndarray of shape (n_rows, n_classes)

        Returns
        -------
        ndarray of shape (n_rows, n_annotators)
        """
        share = np.square(joint) @ self._squares
        share /= np.maximum(joint @ self._chances, TINY)
        after = share.reshape(len(joint), self.n_annotators, -1).sum(axis=2)
        gains: Array = after - settled(joint)[:, None]
        return gains
