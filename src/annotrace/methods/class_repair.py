"""Collapsed and swapped classes, and how to reinitialise them with the rest kept.

Two things go wrong where annotators are poor. Classes are swapped: the labels are explained as well
by matrices whose rows are in another order, and only the larger diagonal shows which order is
right. And a class collapses: hardly any item belongs to it, while another class has absorbed its
items. No item alone has a reason to leave that host, so the class must be reinitialised at once,
from part of the host's items, and kept if that explains the labels better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from annotrace.crowd.pool import pooled_confusion
from annotrace.labels import LabelTable

MAX_TRIALS = 3
"""How often a method trains again at most."""

COLLAPSED = 0.6
"""A class may have collapsed if its share of items is below this part of its share of labels, and
of 1 / n_classes: some labels are errors, and some classes are rare."""

HOSTED = 0.3
"""A host's items are reported as the collapsed class at least this often, as a part of the mean
diagonal."""

NOISE = 0.3
"""Standard deviation, over labels, of the difference between two losses that means nothing: two
trainings on 1,400 digits differ by .005 to .01 in the mean."""

UNDECIDED = 0.5
"""Labels of each of two classes that an item is assumed to have beside its own."""


class Split(NamedTuple):
    """A way to reinitialise a collapsed class.

    Attributes
    ----------
    collapsed : int
        The class to reinitialise.
    host : int
        The class whose items are divided between the two.
    order : tuple of int
        The learned class under each of these names.
    """

    collapsed: int
    host: int
    order: tuple[int, ...]


class ClassRepair:
    """What is wrong with the classes of a solution.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)

    Attributes
    ----------
    order : ndarray of shape (n_classes,)
        The learned class that fits each reported class best.
    is_swapped : bool
        Whether another order of classes fits significantly better.
    splits : list of Split
        Ways to reinitialise collapsed classes, the most promising first: by how many of the host's
        items are reported as the collapsed class. Which class collapsed depends on the order: both
        the best one and the present one count, unless that is significantly worse.
    """

    def __init__(
        self, table: LabelTable, posterior: NDArray[np.float64], confusion: NDArray[np.float64]
    ) -> None:
        self.table, self.posterior, self.confusion = table, posterior, confusion
        share = posterior.mean(axis=0)
        reported = table.labels_per_class() / max(table.n_labels, 1)
        collapsed = share < COLLAPSED * np.minimum(reported, 1 / table.n_classes)
        pool = pooled_confusion(confusion, table.labels_per_annotator())
        # A collapsed class takes the name that no other class fits.
        pool[collapsed] = 0
        learned, name = linear_sum_assignment(pool, maximize=True)
        self.order = learned[np.argsort(name)]
        self.is_swapped = _is_larger(pool, name, share * table.n_labels)
        orders = [self.order] if self.is_swapped else [self.order, learned]
        self.splits = _find_splits(pool, share, collapsed, orders)

    def initial_posterior(self, split: Split | None) -> NDArray[np.float64]:
        """Return the posterior in the best order, a host's items divided with a collapsed class.

        Items are divided by how many labels each has of either class.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
        """
        posterior = self.posterior[:, self._order_for(split)]
        if split is None:
            return posterior
        collapsed, host = pair = split[:2]
        own, other = self.table.votes()[:, pair].T
        share = (own + UNDECIDED) / (own + other + 2 * UNDECIDED)
        both = posterior[:, collapsed] + posterior[:, host]
        posterior[:, collapsed], posterior[:, host] = both * share, both * (1 - share)
        return posterior

    def initial_matrices(
        self, split: Split | None, fresh: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the matrices in the best order, with the rows of a split from `fresh`.

        Parameters
        ----------
        split : Split or None
        fresh : ndarray of shape (n_annotators, n_classes, n_classes)
            Initial matrices.
        """
        matrices = self.confusion[:, self._order_for(split)]
        if split is not None:
            matrices[:, split[:2]] = fresh[:, split[:2]]
        return matrices

    def _order_for(self, split: Split | None) -> NDArray[np.intp]:
        return self.order if split is None else np.array(split.order)


def minimum_gain(n_labels: float) -> float:
    """Return how much the loss per label must fall, on so many labels, to be significant."""
    return float(NOISE / np.sqrt(max(n_labels, 1.0)))


def _is_larger(
    pool: NDArray[np.float64], name: NDArray[np.intp], n_labels: NDArray[np.float64]
) -> bool:
    """Whether another order makes the sum of the diagonal significantly larger.

    Parameters
    ----------
    pool : ndarray of shape (n_classes, n_classes)
    name : ndarray of shape (n_classes,)
        The column that each row would have as its diagonal.
    n_labels : ndarray of shape (n_classes,)
        How many labels each row was counted from.
    """
    row = np.flatnonzero(name != np.arange(len(name)))
    own, other = pool[row, row], pool[row, name[row]]
    variance = (own + other) / np.maximum(n_labels[row], 1)
    return bool((other - own).sum() > np.sqrt(variance.sum()))


def _find_splits(
    pool: NDArray[np.float64],
    share: NDArray[np.float64],
    collapsed: NDArray[np.bool_],
    orders: list[NDArray[np.intp]],
) -> list[Split]:
    """Return all splits of a solution whose classes may be in any of some orders."""
    if collapsed.all():
        return []
    found = {
        split: reported
        for order in orders
        for split, reported in _splits_in(pool[order], share[order], collapsed[order], order)
    }
    return sorted(found, key=lambda split: -found[split])


def _splits_in(
    pool: NDArray[np.float64],
    share: NDArray[np.float64],
    collapsed: NDArray[np.bool_],
    order: NDArray[np.intp],
) -> Iterator[tuple[Split, float]]:
    """Yield splits in one order, with the share of items that speaks for each."""
    least = HOSTED * np.diagonal(pool)[~collapsed].mean()
    for name in np.flatnonzero(collapsed):
        for host in np.flatnonzero(~collapsed & (pool[:, name] >= least)):
            split = Split(int(name), int(host), tuple(order.tolist()))
            yield split, float(pool[host, name] * share[host])
