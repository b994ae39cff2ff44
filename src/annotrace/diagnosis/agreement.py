"""Agreement of annotators beyond chance: Krippendorff's alpha, Fleiss' and Cohen's kappa.

All three compare the observed agreement with that of labels shuffled among items: 1 is perfect, 0
is chance, below 0 annotators disagree systematically. They differ in how chance is defined. All are
for nominal classes, accept any number of labels per item, and are computed from votes or from pairs
of labels of the same item; nothing of size items x annotators is made. If every label is of one
class, they are undefined and NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes, as_names, look_up

# Two annotators who share one item have no kappa if they agree, and 0 if they do not: a mean over
# such pairs would count disagreements only. With 22 shared items the mean kappa of simulated crowds
# is within .04 of their alpha.
MIN_SHARED = 20
# The number of pairs grows with the square of an item's labels. Of an item with more labels, those
# of the annotators with the most labels are compared.
MAX_LABELS_PER_ITEM = 100


def krippendorff_alpha(table: LabelTable) -> float:
    """Return the agreement of any number of annotators, with any labels missing.

    Parameters
    ----------
    table : LabelTable
        Items with fewer than two labels are ignored.

    Returns
    -------
    float

    References
    ----------
    K. Krippendorff, Computing Krippendorff's alpha-reliability, 2011: the nominal metric.
    """
    votes, n_votes = _paired_votes(table)
    agreeing = (votes * (votes - 1) / (n_votes - 1)).sum()
    by_class = votes.sum(0)
    total = by_class.sum()
    by_chance = (total**2 - (by_class**2).sum()) / (total - 1)
    return float(1 - (total - agreeing) / by_chance) if by_chance > 0 else float("nan")


def fleiss_kappa(table: LabelTable) -> float:
    """Return the agreement of annotators, assumed to be interchangeable.

    Parameters
    ----------
    table : LabelTable
        Items with fewer than two labels are ignored. Fleiss requires the same number of
        labels per item; with uneven numbers, an item's agreement is that of its own pairs, and all
        items have the same weight.

    Returns
    -------
    float

    References
    ----------
    J. L. Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76,
    1971.
    """
    votes, n_votes = _paired_votes(table)
    observed = (votes * (votes - 1) / (n_votes * (n_votes - 1))).sum(1).mean()
    by_chance = np.square(votes.sum(0) / votes.sum()).sum()
    return float((observed - by_chance) / (1 - by_chance)) if by_chance < 1 else float("nan")


def cohen_kappa(table: LabelTable, first: object, second: object) -> float:
    """Return the agreement of two annotators on the items that both labelled.

    Parameters
    ----------
    table : LabelTable
    first, second : str or int
        Their names.

    Returns
    -------
    float
        NaN if they share no item, or used one class only.

    References
    ----------
    J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological
    Measurement 20, 1960.
    """
    names = as_names([first, second])
    codes = look_up(names, table.annotators)
    if np.any(codes < 0):
        raise InputError(f"There is no annotator {str(names[np.argmin(codes)])!r} in the table.")
    if codes[0] == codes[1]:
        raise InputError(f"Expected two annotators, but got {str(names[0])!r} twice.")
    pairs = pairwise_kappa(table.select_annotators(codes))
    return float(pairs.kappa[0]) if len(pairs.kappa) else float("nan")


@dataclass(frozen=True)
class PairwiseKappa:
    """Cohen's kappa of every two annotators who share an item.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,), int32
        Codes of annotators, first < second.
    n_shared : ndarray of shape (n_pairs,), int64
        Labels compared.
    kappa : ndarray of shape (n_pairs,)
        NaN if both used one class only.
    """

    first: Codes
    second: Codes
    n_shared: NDArray[np.int64]
    kappa: NDArray[np.float64]

    def mean(self, min_shared: int = MIN_SHARED) -> float:
        """Return the mean over pairs, weighted by shared labels; NaN if no two share enough.

        Parameters
        ----------
        min_shared : int
            Pairs that share fewer labels are ignored, as are those without a kappa.
        """
        known = np.isfinite(self.kappa) & (self.n_shared >= min_shared)
        if not np.any(known):
            return float("nan")
        return float(np.average(self.kappa[known], weights=self.n_shared[known]))


def pairwise_kappa(table: LabelTable) -> PairwiseKappa:
    """Return Cohen's kappa of every two annotators who share an item.

    Memory grows with the pairs of labels of the same item, not with pairs of annotators.

    Parameters
    ----------
    table : LabelTable
        Of items with more than 100 labels, those of the annotators with the most labels are used.
    """
    left, right = _label_pairs(table)
    key = table.annotator[left].astype(np.int64) * table.n_annotators + table.annotator[right]
    distinct, pair = np.unique(key, return_inverse=True)
    first, second = np.divmod(distinct, max(table.n_annotators, 1))
    n_shared = np.bincount(pair, minlength=len(distinct))
    agreed = np.bincount(pair, table.label[left] == table.label[right], minlength=len(distinct))
    by_chance = _chance_agreement(pair, table.label[left], table.label[right], table.n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = np.where(
            by_chance < 1 - 1e-12, (agreed / n_shared - by_chance) / (1 - by_chance), np.nan
        )
    return PairwiseKappa(first.astype(np.int32), second.astype(np.int32), n_shared, kappa)


def _paired_votes(table: LabelTable) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return votes of items with two labels or more, (n, n_classes), and their number, (n, 1)."""
    votes = table.votes()[table.labels_per_item() >= 2].astype(np.float64)
    if len(votes) == 0:
        raise InputError("Expected items with two labels or more, but there are none to compare.")
    return votes, votes.sum(1, keepdims=True)


def _label_pairs(table: LabelTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of every two labels of one item by two annotators, ordered by annotator."""
    rows = _compared_labels(table)
    item, annotator = table.item[rows], table.annotator[rows]
    following = np.searchsorted(item, item, side="right") - np.arange(len(rows)) - 1
    left = np.repeat(np.arange(len(rows)), following)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(following) - following, following)
    ahead, behind = annotator[left] < annotator[right], annotator[left] > annotator[right]
    first = np.concatenate([left[ahead], right[behind]])
    second = np.concatenate([right[ahead], left[behind]])
    return rows[first], rows[second]


def _compared_labels(table: LabelTable) -> NDArray[np.int64]:
    """Return the rows of at most `MAX_LABELS_PER_ITEM` labels per item, sorted by item."""
    if table.labels_per_item().max(initial=0) <= MAX_LABELS_PER_ITEM:
        return np.arange(table.n_labels)
    most_first = np.lexsort((-table.labels_per_annotator()[table.annotator], table.item))
    place = np.arange(table.n_labels) - table.offsets[table.item]
    return most_first[place < MAX_LABELS_PER_ITEM]


def _chance_agreement(
    pair: NDArray[np.int64], left: Codes, right: Codes, n_classes: int
) -> NDArray[np.float64]:
    """Return the agreement of each pair if the labels of either were shuffled, (n_pairs,)."""
    n_shared = np.bincount(pair)
    first, n_first = np.unique(pair * n_classes + left, return_counts=True)
    second, n_second = np.unique(pair * n_classes + right, return_counts=True)
    by_both, one, other = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    products = n_first[one] * n_second[other]
    chance: NDArray[np.float64] = (
        np.bincount(by_both // n_classes, products, minlength=len(n_shared)) / n_shared**2
    )
    return chance
