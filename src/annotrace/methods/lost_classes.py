"""Classes that got lost: nothing belongs to one, while two have gone into another.

EM moves items one by one, and no item alone has a reason to found a class: the matrices of an empty
class explain nothing. So the whole class must be founded at once, from a part of the one that took
it in, and the labels asked whether they are explained better so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from annotrace.diagnosis import pooled_confusion
from annotrace.labels import LabelTable

LOST = 0.25
"""A class is lost where fewer items belong to it than this share of those that are called so."""

UNDECIDED = 0.5
"""Labels of each of two classes that an item is thought to have beside its own."""


class Founding(NamedTuple):
    """A way to found a lost class.

    Attributes
    ----------
    name : int
        The lost class.
    host : int
        The class whose items are shared between both.
    """

    name: int
    host: int


class LostClasses:
    """What to try where classes are lost.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)

    Attributes
    ----------
    foundings : list of Founding
        The most promising first: for each lost class, hosts by how many of their items are called
        by its name. Empty where no class is lost.
    """

    def __init__(
        self, table: LabelTable, posterior: NDArray[np.float64], confusion: NDArray[np.float64]
    ) -> None:
        self.table = table
        called = np.bincount(table.label, minlength=table.n_classes) / max(table.n_labels, 1)
        lost = posterior.mean(axis=0) < LOST * called
        crowd = pooled_confusion(confusion, table.labels_per_annotator())
        crowd[lost] = 0
        # A class may sit under the name of the lost one: the names go round until all fit best.
        sits, names = linear_sum_assignment(crowd, maximize=True)
        order = sits[np.argsort(names)]
        self.posterior, crowd, lost = posterior[:, order], crowd[order], lost[order]
        called_so = crowd * self.posterior.mean(axis=0)[:, None]
        self.foundings = [
            Founding(int(name), int(host))
            for name in np.flatnonzero(lost)
            for host in np.argsort(-called_so[:, name])
            if not lost[host]
        ]

    def found(self, founding: Founding) -> NDArray[np.float64]:
        """Share the items of a class with a lost one, by how many labels each has of either.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            The posterior to begin with.
        """
        name, host = founding
        own, other = (
            np.bincount(self.table.item[self.table.label == label], minlength=self.table.n_items)
            for label in founding
        )
        share = (own + UNDECIDED) / (own + other + 2 * UNDECIDED)
        posterior = self.posterior.copy()
        both = posterior[:, name] + posterior[:, host]
        posterior[:, name], posterior[:, host] = both * share, both * (1 - share)
        return posterior
