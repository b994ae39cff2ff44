"""Classes that training lost or misnamed, and how to begin again with the rest kept.

Two things go wrong where annotators are poor. Classes trade names: the labels are explained as well
by matrices whose rows are in another order, and only the larger diagonal tells which order is
right. And a class gets lost: hardly anything belongs to it, while two have gone into another. No
item alone has a reason to leave that one, so the class must be founded at once, from part of the
items of its host, and the labels asked whether they are explained better so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from annotrace.diagnosis import pooled_confusion
from annotrace.labels import LabelTable

TRIALS = 3
"""Times that a method begins again, at most."""

LOST = 0.6
"""A class may be lost where fewer items belong to it than this share of what is called so, and of
what a class has in the mean: some are called so by mistake, and some are rare."""

HOSTED = 0.3
"""A host calls its items by the lost name at least this often, as a share of the mean diagonal."""

NOISE = 0.3
"""Standard deviation, over labels, of the difference between two losses that mean nothing: two
trainings on 1,400 digits differ by .005 to .01 in the mean."""

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
    """What is amiss with classes, as learned from labels.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)

    Attributes
    ----------
    order : ndarray of shape (n_classes,)
        The learned class that fits each name best.
    renamed : bool
        Whether some fit another name than their own.
    foundings : list of Founding
        What to try for classes that are lost, in terms of names, the most promising first: hosts
        by how many of their items are called by the lost name.
    """

    def __init__(
        self, table: LabelTable, posterior: NDArray[np.float64], confusion: NDArray[np.float64]
    ) -> None:
        self.table, self.posterior, self.confusion = table, posterior, confusion
        share = posterior.mean(axis=0)
        called = np.bincount(table.label, minlength=table.n_classes) / max(table.n_labels, 1)
        lost = share < LOST * np.minimum(called, 1 / table.n_classes)
        crowd = pooled_confusion(confusion, table.labels_per_annotator())
        # A lost class takes the name that nobody else fits.
        crowd[lost] = 0
        learned, name = linear_sum_assignment(crowd, maximize=True)
        self.order = learned[np.argsort(name)]
        self.renamed = _is_larger(crowd, name, share * table.n_labels)
        self.foundings = _foundings(crowd[self.order], share[self.order], lost[self.order])

    def begin_posterior(self, founding: Founding) -> NDArray[np.float64]:
        """Share the items of a host with a lost class, by how many labels each has of either.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            All other classes as learned, under their best names.
        """
        table, (name, host) = self.table, founding
        own, other = (
            np.bincount(table.item[table.label == label], minlength=table.n_items)
            for label in founding
        )
        share = (own + UNDECIDED) / (own + other + 2 * UNDECIDED)
        posterior = self.posterior[:, self.order]
        both = posterior[:, name] + posterior[:, host]
        posterior[:, name], posterior[:, host] = both * share, both * (1 - share)
        return posterior

    def begin_matrices(
        self, founding: Founding | None, fresh: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Give the matrices under their best names, the rows of a lost class and its host `fresh`.

        Parameters
        ----------
        founding : Founding or None
        fresh : ndarray of shape (n_annotators, n_classes, n_classes)
            Matrices of which nothing is learned.
        """
        matrices = self.confusion[:, self.order]
        if founding is not None:
            matrices[:, list(founding)] = fresh[:, list(founding)]
        return matrices


def worth_it(n_labels: float) -> float:
    """Give how much the loss of a label must fall, judged by so many, to be more than chance."""
    return float(NOISE / np.sqrt(max(n_labels, 1.0)))


def _is_larger(
    crowd: NDArray[np.float64], name: NDArray[np.intp], n_labels: NDArray[np.float64]
) -> bool:
    """Tell whether other names make the sum of the diagonal larger than by chance.

    Parameters
    ----------
    crowd : ndarray of shape (n_classes, n_classes)
    name : ndarray of shape (n_classes,)
        The column that each row would have as its diagonal.
    n_labels : ndarray of shape (n_classes,)
        What each row was counted from.
    """
    row = np.flatnonzero(name != np.arange(len(name)))
    own, other = crowd[row, row], crowd[row, name[row]]
    variance = (own + other) / np.maximum(n_labels[row], 1)
    return bool((other - own).sum() > np.sqrt(variance.sum()))


def _foundings(
    crowd: NDArray[np.float64], share: NDArray[np.float64], lost: NDArray[np.bool_]
) -> list[Founding]:
    if lost.all():
        return []
    often = HOSTED * np.diagonal(crowd)[~lost].mean()
    called_so = crowd * share[:, None]
    return [
        Founding(int(name), int(host))
        for name in np.flatnonzero(lost)
        for host in np.argsort(-called_so[:, name])
        if not lost[host] and crowd[host, name] >= often
    ]
