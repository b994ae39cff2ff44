"""Agreement of annotators beyond chance: Krippendorff's alpha, Fleiss' and Cohen's kappa.

All three compare the observed agreement with that of labels shuffled among items: 1 is perfect, 0
is chance, below 0 annotators disagree systematically. They differ in how chance is defined. All are
for nominal classes, accept any number of labels per item, and are computed from votes or from pairs
of labels of the same item; nothing of size items x annotators is made. If every label is of one
class, they are undefined and NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.label_pairs import labels_of
from annotrace.errors import InputError
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes, as_names, look_up

Counts: TypeAlias = NDArray[np.int64]

# Two annotators who share one item have no kappa if they agree, and 0 if they do not: a mean over
# such pairs would count disagreements only. With 22 shared items the mean kappa of simulated crowds
# is within .04 of their alpha.
MIN_SHARED = 20
# More pairs of labels are sampled: 2 million take half a second. A mean over 1,000 pairs of
# annotators who share 20 items is within .01.
MAX_PAIRS = 2**21
# The mean number of items that two annotators share at which items can be drawn instead.
ENOUGH_SHARED = 1000
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
    agreeing, by_class = 0.0, np.zeros(table.n_classes)
    for n_agreeing, n_labels, of_class in _agreeing_pairs(table):
        agreeing += (n_agreeing / (n_labels - 1)).sum()
        by_class += of_class
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
    agreeing, by_class, n_items = 0.0, np.zeros(table.n_classes), 0
    for n_agreeing, n_labels, of_class in _agreeing_pairs(table):
        agreeing += (n_agreeing / (n_labels * (n_labels - 1))).sum()
        by_class += of_class
        n_items += len(n_labels)
    observed = agreeing / n_items
    by_chance = np.square(by_class / by_class.sum()).sum()
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
    pairs = pairwise_kappa(table.select_annotators(codes), max_pairs=None)
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
    sampled : str
        What was drawn at random, if the table has too many pairs of labels: "annotators" or
        "items"; "" if all were compared.
    n_compared : int
        How many of them were compared.
    """

    first: Codes
    second: Codes
    n_shared: NDArray[np.int64]
    kappa: NDArray[np.float64]
    sampled: str = ""
    n_compared: int = 0

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


def pairwise_kappa(
    table: LabelTable, max_pairs: int | None = MAX_PAIRS, *, min_shared: int = 1
) -> PairwiseKappa:
    """Return Cohen's kappa of every two annotators who share an item.

    Memory grows with the pairs of labels of the same item, not with pairs of annotators.

    Parameters
    ----------
    table : LabelTable
        Of items with more than 100 labels, those of the annotators with the most labels are used.
    max_pairs : int or None
        If there are more pairs of labels of the same item, annotators are drawn at random, always
        the same, so that about as many pairs are compared; or items, if the annotators are few.
    min_shared : int
        Pairs of annotators who share fewer items are left out. Of large crowds they are most pairs.
    """
    table, sampled, n_compared = _sample(table, max_pairs)
    left, right = _label_pairs(table)
    key = table.annotator[left].astype(np.int64) * table.n_annotators + table.annotator[right]
    if min_shared > 1:
        kept = _is_frequent(key, min_shared)
        left, right, key = left[kept], right[kept], key[kept]
    distinct, pair = np.unique(key, return_inverse=True)
    first, second = np.divmod(distinct, max(table.n_annotators, 1))
    n_shared = np.bincount(pair, minlength=len(distinct))
    agreed = np.bincount(pair, table.label[left] == table.label[right], minlength=len(distinct))
    by_chance = _chance_agreement(pair, table.label[left], table.label[right], table.n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = np.where(
            by_chance < 1 - 1e-12, (agreed / n_shared - by_chance) / (1 - by_chance), np.nan
        )
    found = first.astype(np.int32), second.astype(np.int32), n_shared, kappa
    return PairwiseKappa(*found, sampled, n_compared)


def _is_frequent(key: NDArray[np.int64], least: int) -> NDArray[np.bool_]:
    """Whether each key occurs at least so many times."""
    distinct, n_times = np.unique(key, return_counts=True)
    return np.isin(key, distinct[n_times >= least])


def _sample(table: LabelTable, max_pairs: int | None) -> tuple[LabelTable, str, int]:
    """Return the labels to compare, what was drawn, and how many of them."""
    n_labels = np.minimum(table.labels_per_item(), MAX_LABELS_PER_ITEM)
    n_pairs = int((n_labels * (n_labels - 1) // 2).sum())
    if max_pairs is None or n_pairs <= max_pairs:
        return table, "", 0
    share, rng = max_pairs / n_pairs, np.random.default_rng(0)
    n_annotators = np.count_nonzero(table.labels_per_annotator())
    if 2 * share * n_pairs / n_annotators**2 > ENOUGH_SHARED:
        chosen = rng.random(table.n_items) < share
        return table.select_items(chosen), "items", int(chosen.sum())
    # Pairs of those that are drawn keep all items that they share.
    drawn = rng.random(table.n_annotators) < np.sqrt(share)
    return labels_of(table, drawn), "annotators", int(drawn.sum())


def _agreeing_pairs(table: LabelTable) -> Iterator[tuple[Counts, Counts, Counts]]:
    """Iterate over blocks of items with two labels or more.

    Yields
    ------
    n_agreeing : ndarray of shape (n,)
        Ordered pairs of equal labels of each item.
    n_labels : ndarray of shape (n,)
    of_class : ndarray of shape (n_classes,)
        Labels of each class in the block.
    """
    n_labels = table.labels_per_item()
    if n_labels.max(initial=0) < 2:
        raise InputError("Expected items with two labels or more, but there are none to compare.")
    for items, _ in table.blocks():
        votes, is_paired = table.votes(items), n_labels[items] >= 2
        n_agreeing = np.einsum("ik,ik->i", votes, votes) - n_labels[items]
        yield n_agreeing[is_paired], n_labels[items][is_paired], is_paired @ votes


def _label_pairs(table: LabelTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of every two labels of one item by two annotators, ordered by annotator."""
    rows = _compared_labels(table)
    item, annotator = table.item[rows], table.annotator[rows]
    following = np.cumsum(np.bincount(item))[item] - np.arange(len(rows)) - 1
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
