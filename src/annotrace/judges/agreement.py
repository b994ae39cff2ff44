r"""Agreement of labels with other labels of the same items: shares, and kappa beyond chance.

A label is compared with votes: the known class of its item (one vote), or what people said. With
N[c, k] the number of comparisons of a label c with a vote k, p = N / N.sum(),

.. math::

    \kappa = \frac{\sum_c p_{cc} - \sum_c p_{c\cdot} p_{\cdot c}}
                  {1 - \sum_c p_{c\cdot} p_{\cdot c}}

is Cohen's. Its variance is that of its linearisation in N, with items as independent clusters; for
one label and one vote per item this is the variance of Fleiss, Cohen and Everitt (1969).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.judges.estimates import UNKNOWN, Array, Estimate, ratio_variance, share_estimate
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes


class Agreement(NamedTuple):
    """How far labels agree with votes.

    Attributes
    ----------
    n_items : int
        Items compared.
    share : Estimate
        Share of equal pairs of a label and a vote.
    kappa : Estimate
        The same beyond chance; unknown if one class only occurs.
    """

    n_items: int
    share: Estimate
    kappa: Estimate


def agreement_with(item: Codes, label: Codes, votes: NDArray[Any]) -> Agreement:
    """Compare labels with votes for the same items.

    Parameters
    ----------
    item, label : ndarray of shape (n_labels,), int32
    votes : ndarray of shape (n_labels, n_classes)
        Number of votes for each class that each label is compared with; none is legal.
    """
    compared = votes.sum(axis=1) > 0
    item, label, votes = item[compared], label[compared], votes[compared].astype(np.float64)
    n_items = len(np.unique(item))
    if n_items == 0:
        return Agreement(0, UNKNOWN, UNKNOWN)
    equal = votes[np.arange(len(label)), label]
    variance = ratio_variance(equal, votes.sum(axis=1), item)
    share = share_estimate(equal.sum() / votes.sum(), n_items, variance)
    return Agreement(n_items, share, _kappa(item, label, votes, n_items))


def agreement_within(table: LabelTable) -> Agreement:
    """Compare every label with the other labels of its item."""
    return agreement_with(table.item, table.label, other_votes(table, table))


def agreement_between(table: LabelTable, others: LabelTable) -> Agreement:
    """Compare every label with the labels that another table has for the same item.

    Both tables have the same items and classes.
    """
    return agreement_with(table.item, table.label, others.votes()[table.item])


def other_votes(table: LabelTable, among: LabelTable) -> NDArray[np.int64]:
    """Count the votes of a table beside each label of another, shape (n_labels, n_classes).

    Parameters
    ----------
    table, among : LabelTable
        Every label of `table` is in `among` too; it is not counted.
    """
    votes = among.votes()[table.item]
    votes[np.arange(table.n_labels), table.label] -= 1
    return votes


def _kappa(item: Codes, label: Codes, votes: Array, n_items: int) -> Estimate:
    pairs = np.zeros((votes.shape[1],) * 2)
    np.add.at(pairs, label, votes)
    shares = pairs / pairs.sum()
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    by_chance, observed = float(rows @ columns), float(np.trace(shares))
    if by_chance > 1 - 1e-12:
        return UNKNOWN
    # The gradient of kappa in the shares of pairs, times (1 - by_chance)^2.
    gradient = (1 - by_chance) * np.eye(len(shares))
    gradient -= (1 - observed) * (columns[:, None] + rows[None, :])
    influence = (gradient[label] * votes).sum(axis=1) / (1 - by_chance) ** 2
    variance = ratio_variance(influence, votes.sum(axis=1), item)
    # Wilson's interval on the scale of shares, which has a width even for perfect agreement.
    scale = 1 / (1 - by_chance)
    share = share_estimate(observed, n_items, variance / scale**2)
    return share.scaled(scale, -by_chance * scale)
