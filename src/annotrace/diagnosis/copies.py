r"""Who gives the answers of another: one person with two names, or two who share their answers.

Two good annotators agree on most items, and two who answer alike without looking on all of them;
what gives copies away is the same answers against all others, which are mistakes unless the two
know better. Given what everybody but the two says of an item, two
annotators who work by themselves report :math:`k` and :math:`l` with the chance :math:`\sum_t q_t
A_{tk} B_{tl}`, where :math:`q` is the truth by the others and :math:`A, B` are their matrices. If
one copies the other, both report :math:`k` with the chance :math:`\sum_t q_t A_{tk}`, or
:math:`B_{tk}`. The likeliest share of answers copied is looked for between the two.

People who work by themselves err together too, on items that are hard for all. So a pair is held
against the share that is likeliest for all pairs, and against how far pairs usually are from it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from annotrace.diagnosis.agreement import LEAST_SHARED, label_pairs
from annotrace.diagnosis.counting import (
    expected_counts,
    label_scores,
    log_columns,
    normalised,
    report_matrix,
)
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes

# In 180 simulated crowds no two who work by themselves are so surely and so much alike, and two of
# the 22,000 pairs in 15 public crowds are: see docs/trust.md.
LEAST_COPIED = 0.6
BY_CHANCE = 0.01
_SHARES = np.arange(0, 1, 0.05)
# Pairs of labels times classes: of more, every other item is looked at, or every third, ...
_CELLS, _CELLS_AT_ONCE = 5e7, 4e6


class Copies(NamedTuple):
    """Pairs of annotators who do not answer independently.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,), int32
        Codes of annotators; which of the two copies is not known.
    n_shared : ndarray of shape (n_pairs,), int64
        Items compared.
    share : ndarray of shape (n_pairs,)
        Answers copied, of those.
    """

    first: Codes
    second: Codes
    n_shared: NDArray[np.int64]
    share: NDArray[np.float64]


class _Shared(NamedTuple):
    """Labels of two annotators on the same item, n of them, and the n_pairs of who gave them."""

    left: NDArray[np.int64]  # (n,): row of the label by the first of the pair
    right: NDArray[np.int64]  # (n,)
    pair: NDArray[np.int64]  # (n,): below n_pairs
    first: Codes  # (n_pairs,)
    second: Codes  # (n_pairs,)


def find_copies(table: LabelTable, log_prior: NDArray[Any], confusion: NDArray[Any]) -> Copies:
    """Find pairs of annotators with the same mistakes, far more of them than is usual in the crowd.

    Parameters
    ----------
    table : LabelTable
    log_prior : ndarray of shape (n_items, n_classes)
        What is known of each item without its labels.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    """
    reports = report_matrix(table)
    scores = log_prior + label_scores(reports, confusion)
    counts = expected_counts(reports, normalised(scores))
    busy = np.flatnonzero(table.labels_per_annotator() >= LEAST_SHARED)
    table = table.select_annotators(busy)
    looked_at = np.arange(0, table.n_items, _step(table))
    table, scores = table.select_items(looked_at), scores[looked_at]
    shared = _shared_labels(table)
    ratios = _ratios(table, scores, confusion[busy], _habits(counts, confusion)[busy], shared)
    likelihood = _log_likelihoods(shared, ratios)
    share = _SHARES[likelihood.argmax(axis=0)]
    sure = ndtr(-_beyond_usual(likelihood)) * len(share) < BY_CHANCE
    found = sure & (share >= LEAST_COPIED)
    n_shared = np.bincount(shared.pair, minlength=len(share))
    first, second = (busy[codes[found]].astype(np.int32) for codes in (shared.first, shared.second))
    return Copies(first, second, n_shared[found], share[found])


def _step(table: LabelTable) -> int:
    n_labels = table.labels_per_item()
    n_cells = table.n_classes * (n_labels * (n_labels - 1)).sum() / 2
    return max(int(np.ceil(n_cells / _CELLS)), 1)


def _shared_labels(table: LabelTable) -> _Shared:
    """Lay side by side the labels of every two annotators who share enough items."""
    left, right = label_pairs(table)
    key = table.annotator[left].astype(np.int64) * table.n_annotators + table.annotator[right]
    distinct, pair, n_shared = np.unique(key, return_inverse=True, return_counts=True)
    enough = n_shared >= LEAST_SHARED
    place, kept = np.cumsum(enough) - 1, enough[pair]
    first, second = np.divmod(distinct[enough], max(table.n_annotators, 1))
    return _Shared(left[kept], right[kept], place[pair[kept]], first, second)


def _habits(counts: NDArray[Any], confusion: NDArray[Any]) -> NDArray[np.float64]:
    """Give matrices as counted, (n_annotators, n_classes, n_classes), with a label of `confusion`.

    Two who always give the same answer would seem to agree too often by matrices drawn to others.
    """
    habits: NDArray[np.float64] = (counts + confusion) / (counts.sum(axis=2, keepdims=True) + 1)
    return habits


def _ratios(
    table: LabelTable,
    scores: NDArray[Any],
    confusion: NDArray[Any],
    habits: NDArray[Any],
    shared: _Shared,
) -> NDArray[np.float64]:
    """Tell how much likelier two labels are if one was copied, (n,): 0 where they differ.

    Parameters
    ----------
    table : LabelTable
    scores : ndarray of shape (n_items, n_classes)
        Log probabilities of the truth by all labels.
    confusion, habits : ndarray of shape (n_annotators, n_classes, n_classes)
        By which the truth was found, and by which the two answer.
    shared : _Shared
    """
    columns, chances = log_columns(confusion), log_columns(habits)
    ratios = np.zeros(len(shared.pair))
    alike = np.flatnonzero(table.label[shared.left] == table.label[shared.right])
    n_parts = int(np.ceil(len(alike) * table.n_classes / _CELLS_AT_ONCE))
    for part in np.array_split(alike, max(n_parts, 1)):
        rows = shared.left[part], shared.right[part]
        one, other = (columns[table.annotator[row], table.label[row]] for row in rows)
        truth = normalised(scores[table.item[rows[0]]] - one - other)
        one, other = (np.exp(chances[table.annotator[row], table.label[row]]) for row in rows)
        copied = (truth * (one + other)).sum(axis=1) / 2
        ratios[part] = copied / (truth * one * other).sum(axis=1)
    return ratios


def _log_likelihoods(shared: _Shared, ratios: NDArray[Any]) -> NDArray[np.float64]:
    """Give the gain of each pair over no copying by the share copied, (n_shares, n_pairs)."""
    n_pairs = len(shared.first)
    gains = (np.log1p(share * (ratios - 1)) for share in _SHARES)
    return np.stack([np.bincount(shared.pair, gain, minlength=n_pairs) for gain in gains])


def _beyond_usual(likelihood: NDArray[Any]) -> NDArray[np.float64]:
    """Give deviations by which pairs copy more than all do, (n_pairs,): signed root of the ratio.

    The upper quartile of pairs is no further out than chance has it, or all are drawn in.
    """
    usual, own = likelihood.sum(axis=1).argmax(), likelihood.argmax(axis=0)
    gained = likelihood.max(axis=0) - likelihood[usual]
    deviations = np.where(own > usual, np.sqrt(2 * gained), 0)
    spread = np.quantile(deviations, 0.75) / ndtri(0.75) if len(own) else 1.0
    beyond: NDArray[np.float64] = deviations / max(spread, 1.0)
    return beyond
