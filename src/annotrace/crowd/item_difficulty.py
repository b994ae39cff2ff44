r"""Item difficulty: an item is clear or doubtful, and labels of doubtful items may be guesses.

On a clear item, annotator r reports by a confusion matrix. On a doubtful item each label is, with
probability lambda, a guess by the annotator's label marginal, which says nothing about the truth
(as in MACE, but by item)::

    p(label | class, clear)    = A[r, class, label]
    p(label | class, doubtful) = (1 - lambda) A[r, class, label] + lambda g[r, label]

State k of an item is a clear item of class k, state n_classes + k a doubtful one. How many items
are doubtful and how much is guessed is learned, within limits.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# Without limits, doubtful items may explain a whole crowd in which few annotators know: an expert
# among spammers is then taken for a spammer. Of .25, .3 and .4, and of .7 to .9, none is better.
MAX_DOUBTFUL, MAX_GUESSED = 0.3, 0.8


class StateLogs(NamedTuple):
    """The log-likelihood of reports on clear and doubtful items.

    Attributes
    ----------
    logs : Tensor of shape (n_annotators, 2 * n_classes, n_classes)
        log p(label | state), by annotator.
    seen : Tensor of shape (n_annotators, n_classes, n_classes)
        Probability that a label of a doubtful item is not a guess.
    """

    logs: Tensor
    seen: Tensor


def state_logs(logs: Tensor, log_guesses: Tensor, guess_rate: Tensor) -> StateLogs:
    """Return the log-likelihood of each label in each state.

    Parameters
    ----------
    logs : Tensor of shape (n_annotators, n_classes, n_classes)
        Logarithms of confusion matrices, or their expectations.
    log_guesses : Tensor of shape (n_annotators, 1, n_classes)
        Of each annotator's guesses.
    guess_rate : Tensor of shape ()
        How often a label of a doubtful item is a guess.
    """
    seen = logs + torch.log1p(-guess_rate)
    either = torch.logaddexp(seen, log_guesses + guess_rate.log())
    return StateLogs(torch.cat([logs, either], 1), (seen - either).exp_())


class ReportCounts(NamedTuple):
    """Counts of labels that report what was seen and of guesses.

    Attributes
    ----------
    seen : Tensor of shape (n_annotators, n_classes, n_classes)
    guessed : Tensor of shape (n_annotators, 1, n_classes)
    guess_rate : Tensor of shape ()
    """

    seen: Tensor
    guessed: Tensor
    guess_rate: Tensor


def split_counts(counts: Tensor, seen: Tensor) -> ReportCounts:
    """Divide counts by state into labels that report what was seen, and guesses.

    Parameters
    ----------
    counts : Tensor of shape (n_annotators, 2 * n_classes, n_classes)
        [annotator, state, reported].
    seen : Tensor of shape (n_annotators, n_classes, n_classes)
        As in `StateLogs`.
    """
    clear, doubtful = counts.tensor_split(2, dim=1)
    guessed = doubtful * (1 - seen)
    guess_rate = ((guessed.sum() + 1) / (doubtful.sum() + 2)).clamp(max=MAX_GUESSED)
    return ReportCounts(clear + doubtful * seen, guessed.sum(1, keepdim=True), guess_rate)


def cap_doubtful(n_items: Tensor, largest: float = MAX_DOUBTFUL) -> Tensor:
    """Return how many items are clear and doubtful, within a limit, shape (2,).

    Parameters
    ----------
    n_items : Tensor of shape (2,)
    largest : float
        The largest share of doubtful items.
    """
    n_clear, n_doubtful = n_items
    above = (n_doubtful - largest * (n_clear + n_doubtful)).clamp(min=0)
    return torch.stack([n_clear + above, n_doubtful - above])


def margin(votes: Tensor) -> Tensor:
    """Return how far the first class leads the second, (n_items, n_classes) to (n_items, 1)."""
    if votes.shape[1] == 1:
        return torch.ones_like(votes)
    highest = votes.topk(2, dim=1).values
    return highest[:, :1] - highest[:, 1:]
