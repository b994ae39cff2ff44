r"""Who gives the answers of another: one person with two names, or two who share their answers.

Two good annotators agree on most items, and two who answer alike without looking on all of them;
what gives copies away is the same answers against all others, which are mistakes unless the two
know better. Given what everybody but the two says of an item, two annotators who work by themselves
report :math:`k` and :math:`l` with the chance :math:`\sum_t q_t A_{tk} B_{tl}`, where :math:`q` is
the truth by the others and :math:`A, B` are their matrices. If one copies the other, both report
:math:`k` with the chance :math:`\sum_t q_t A_{tk}`, or :math:`B_{tk}`. The likeliest share of
answers copied is looked for between the two.

Copies may be believed against all others, and then their matrices say that they know better. So a
second explanation is tried: both are one person, whose matrix is learned from :math:`q` alone. The
likelier of the two counts. Two who do know better are as likely by either.

People who work by themselves err together too, on items that are hard for all. So a pair is held
against the share that is likeliest for all pairs, and against how far pairs usually are from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
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

# No two who work by themselves are so surely and so much alike in benchmarks/flags.py, and two of
# the 22,000 pairs in 14 public crowds are: see docs/trust.md.
LEAST_COPIED = 0.6
BY_CHANCE = 0.001
_SHARES = np.arange(0, 1, 0.05)
# Of 540 pairs of copies 379 are found with 10 steps of EM, and 398 with 20 in half again the time.
_STEPS = 10
# Labels of the crowd in each row of a pair's matrix: as many are found with 1 (380), fewer with 16
# (352).
_CROWD_LABELS = 4
# Pairs of labels times classes: of more, every other item is looked at, or every third, ...
# A million labels of 4 classes, ten an item, take 4 s by every other item, and 7 s by all.
_CELLS, _CELLS_AT_ONCE = 1e7, 4e5


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
    """Labels of two annotators on the same item, n of them, pair by pair, and who gave them."""

    left: NDArray[np.int64]  # (n,): row of the label by the first of the pair
    right: NDArray[np.int64]  # (n,)
    n_shared: NDArray[np.int64]  # (n_pairs,)
    first: Codes  # (n_pairs,)
    second: Codes  # (n_pairs,)

    @property
    def pair(self) -> NDArray[np.int64]:
        """Whose labels they are, (n,): below n_pairs."""
        return np.repeat(np.arange(len(self.n_shared)), self.n_shared)

    def parts(self, n_rows: float) -> Iterator[_Shared]:
        """Give some pairs at a time, of about so many labels."""
        ends = np.cumsum(self.n_shared)
        starts = np.flatnonzero(np.diff(ends // n_rows)) + 1
        rows = (np.split(which, ends[starts - 1]) for which in (self.left, self.right))
        pairs = (np.split(each, starts) for each in self[2:])
        return map(_Shared, *rows, *pairs)


class _Answers(NamedTuple):
    """What two annotators say of the items that they share, and what the others make of these."""

    truth: NDArray[np.float64]  # (n, n_classes)
    left: NDArray[np.int64]  # (n,): pair * n_classes + label
    right: NDArray[np.int64]  # (n,)
    pair: NDArray[np.int64]  # (n,): below n_pairs


def find_copies(table: LabelTable, log_prior: NDArray[Any], confusion: NDArray[Any]) -> Copies:
    """Find pairs of annotators with the same mistakes, far more of them than is usual in the crowd.

    Parameters
    ----------
    table : LabelTable
    log_prior : ndarray of shape (n_items, n_classes)
        What is known of each item without its labels.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    """
    reports, n_classes = report_matrix(table), table.n_classes
    scores = log_prior + label_scores(reports, confusion)
    counts = expected_counts(reports, normalised(scores))
    busy = np.flatnonzero(table.labels_per_annotator() >= LEAST_SHARED)
    table = table.select_annotators(busy)
    looked_at = np.arange(0, table.n_items, _step(table))
    table, scores = table.select_items(looked_at), scores[looked_at]
    shared = _shared_labels(table)
    columns = log_columns(confusion[busy])
    habits = np.exp(log_columns(_habits(counts, confusion)[busy]))
    crowd = _habits(counts.sum(axis=0), 1 / n_classes).T
    parts = [
        _log_likelihoods(
            _answers(table, scores, columns, part), _of_both(table, habits, part), crowd
        )
        for part in shared.parts(_CELLS_AT_ONCE / n_classes)
    ]
    likelihood = np.concatenate(parts, axis=1)
    share = _SHARES[likelihood.argmax(axis=0)]
    sure = ndtr(-_beyond_usual(likelihood)) * len(share) < BY_CHANCE
    found = sure & (share >= LEAST_COPIED)
    first, second = (busy[codes[found]].astype(np.int32) for codes in (shared.first, shared.second))
    return Copies(first, second, shared.n_shared[found], share[found])


def _step(table: LabelTable) -> int:
    n_labels = table.labels_per_item()
    n_cells = table.n_classes * (n_labels * (n_labels - 1)).sum() / 2
    return max(int(np.ceil(n_cells / _CELLS)), 1)


def _shared_labels(table: LabelTable) -> _Shared:
    """Lay side by side the labels of every two annotators who share enough items."""
    left, right = label_pairs(table)
    key = table.annotator[left].astype(np.int64) * table.n_annotators + table.annotator[right]
    by_pair = np.argsort(key, kind="stable")
    distinct, n_shared = np.unique(key[by_pair], return_counts=True)
    enough = n_shared >= LEAST_SHARED
    kept = by_pair[np.repeat(enough, n_shared)]
    first, second = np.divmod(distinct[enough], max(table.n_annotators, 1))
    return _Shared(left[kept], right[kept], n_shared[enough], first, second)


def _habits(counts: NDArray[Any], drawn_to: NDArray[Any] | float) -> NDArray[np.float64]:
    """Give matrices as counted, (..., n_classes, n_classes), with a label of `drawn_to` in a row.

    Two who always give the same answer would seem to agree too often by matrices drawn to others.
    """
    habits: NDArray[np.float64] = (counts + drawn_to) / (counts.sum(axis=-1, keepdims=True) + 1)
    return habits


def _of_both(
    table: LabelTable, columns: NDArray[Any], shared: _Shared
) -> list[NDArray[np.float64]]:
    """Look up the columns of both labels of a pair, (n, n_classes) each."""
    return [columns[table.annotator[row], table.label[row]] for row in shared[:2]]


def _answers(
    table: LabelTable, scores: NDArray[Any], columns: NDArray[Any], shared: _Shared
) -> _Answers:
    """Take the labels of the two out of the truth.

    Parameters
    ----------
    table : LabelTable
    scores : ndarray of shape (n_items, n_classes)
        Log probabilities of the truth by all labels.
    columns : ndarray of shape (n_annotators, n_classes, n_classes)
        Of `log_columns`, by which they were found.
    shared : _Shared
    """
    truth = normalised(scores[table.item[shared.left]] - sum(_of_both(table, columns, shared)))
    pair = shared.pair
    left, right = (pair * table.n_classes + table.label[row] for row in shared[:2])
    return _Answers(truth, left, right, pair)


def _log_likelihoods(
    answers: _Answers, own: list[NDArray[np.float64]], crowd: NDArray[Any]
) -> NDArray[np.float64]:
    """Give the log-likelihood of each pair by the share copied, (n_shares, n_pairs).

    Either the two are who they seem to be, or one person as the others see them.

    Parameters
    ----------
    answers : _Answers
    own : two ndarrays of shape (n, n_classes)
        Chances of both labels by the matrices of the two.
    crowd : ndarray of shape (n_classes, n_classes)
        [reported, true].
    """
    columns = _one_person(answers, crowd)
    as_one = _by_share(answers, columns[answers.left], columns[answers.right])
    return np.maximum(_by_share(answers, *own), as_one)


def _one_person(answers: _Answers, crowd: NDArray[Any]) -> NDArray[np.float64]:
    """Estimate one matrix for both of a pair, and the share that they copy, by EM from the crowd's.

    The matrices of the two will not do: two equal labels may decide what is taken for right, and
    then copies seem to be always right.

    Returns
    -------
    ndarray of shape (n_pairs * n_classes, n_classes)
        Chances of each answer, by the truth.
    """
    _, left, right, pair = answers
    n_shared = np.bincount(pair)
    by_left, by_right = (_answer_matrix(cell, len(n_shared) * len(crowd)) for cell in (left, right))
    columns, share = np.tile(crowd, (len(n_shared), 1)), np.full(len(n_shared), 0.5)
    for _ in range(_STEPS):
        copied = (share[pair] * (left == right))[:, None]
        alone = (1 - share[pair])[:, None] * columns[right]
        weight = answers.truth * columns[left]
        weight /= np.einsum("nt,nt->n", weight, copied + alone)[:, None]
        alone *= weight
        # What was copied is said once.
        counts = by_left.T @ (weight * copied + alone) + by_right.T @ alone
        counts = counts.reshape(-1, *crowd.shape) + _CROWD_LABELS * crowd
        columns = (counts / counts.sum(axis=1, keepdims=True)).reshape(columns.shape)
        share = 1 - (np.bincount(pair, alone.sum(axis=1)) + 0.5) / (n_shared + 1)
    return columns


def _answer_matrix(cell: NDArray[np.int64], n_cells: int) -> csr_matrix:
    """Lay out answers as a sparse matrix (n, n_cells) with a one in each row."""
    n = len(cell)
    return csr_matrix((np.ones(n), cell, np.arange(n + 1)), shape=(n, n_cells))


def _by_share(answers: _Answers, one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Give the log-likelihood of each pair by the share copied, (n_shares, n_pairs).

    Parameters
    ----------
    answers : _Answers
    one, other : ndarray of shape (n, n_classes)
        Chances of both labels.
    """
    truth, left, right, pair = answers
    alone = np.einsum("nt,nt,nt->n", truth, one, other)
    copied = (left == right) * np.einsum("nt,nt->n", truth, one + other) / 2
    mixed = (np.log(alone + share * (copied - alone)) for share in _SHARES)
    return np.stack([np.bincount(pair, each) for each in mixed])


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
