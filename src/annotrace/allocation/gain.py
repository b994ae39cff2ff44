r"""The expected gain of a label: how much more probable the true class of its item becomes.

The state of an item is a *joint* array of shape (n_rows, n_classes): the probability of each
combination of the reports planned so far (one row if there are none) together with each true class.
The expected probability of the true class is

.. math:: S = \sum_{rows} \frac{\sum_i p_i^2}{\sum_i p_i}.

A label by an annotator who reports j for class i with probability :math:`A_{ij}` splits a row p
into the rows :math:`p_i A_{ij}`, one for each j, which never lowers S. The rise of S is the gain of
the label; the uncertainty 1 - S is an upper bound of any gain.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

TINY = 1e-300
# Combinations of reports that are distinguished; the least probable others count as one.
MAX_ROWS = 24


def expected_certainty(joint: Array) -> Array:
    """Return the contribution of each row to the probability of the true class, shape (...).

    Parameters
    ----------
    joint : ndarray of shape (..., n_classes)
    """
    shares: Array = np.square(joint).sum(axis=-1) / np.maximum(joint.sum(axis=-1), TINY)
    return shares


def add_report(joint: Array, matrix: Array) -> Array:
    """Return the joint array of an item after one more report.

    Parameters
    ----------
    joint : ndarray of shape (n_rows, n_classes)
    matrix : ndarray of shape (n_classes, n_classes)
        Of the annotator, [true, reported].

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The most probable combinations of reports, and the sum of the others in one row, which can
        only overstate the uncertainty.
    """
    rows = (joint[:, None, :] * matrix.T).reshape(-1, joint.shape[1])
    if len(rows) <= MAX_ROWS:
        return rows
    order = np.argsort(-rows.sum(axis=1), kind="stable")
    rest = rows[order[MAX_ROWS:]].sum(axis=0, keepdims=True)
    return np.concatenate([rows[order[:MAX_ROWS]], rest])


class Reports:
    """The reports of all annotators, arranged so that one product compares them all.

    Parameters
    ----------
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported].
    """

    def __init__(self, matrices: Array) -> None:
        self.n_annotators, n_classes, _ = matrices.shape
        self._likelihood = np.ascontiguousarray(matrices.transpose(1, 0, 2)).reshape(n_classes, -1)
        self._squares = np.square(self._likelihood)

    @property
    def width(self) -> int:
        """Number of possible reports: annotators times classes."""
        return self._likelihood.shape[1]

    def gains(self, joint: Array) -> Array:
        """Return what a label by each annotator adds to each row of `expected_certainty`.

        Parameters
        ----------
        joint : ndarray of shape (n_rows, n_classes)

        Returns
        -------
        ndarray of shape (n_rows, n_annotators)
        """
        share = np.square(joint) @ self._squares
        share /= np.maximum(joint @ self._likelihood, TINY)
        after = share.reshape(len(joint), self.n_annotators, -1).sum(axis=2)
        gains: Array = after - expected_certainty(joint)[:, None]
        return gains
