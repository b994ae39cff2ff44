r"""Annotators whose labels of an item depend on each other beyond its true class.

Two reasons are modelled. The item may be doubtful, and then labels may be guesses
(`annotrace.crowd.item_difficulty`). And annotators may share errors on other items too, with a
correlation of :math:`\rho`: then the log-likelihood of m labels is divided by the *design effect*
of survey statistics, :math:`1 + (m - 1) \rho`.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.annotator_model import FixedMatrices, MatrixModel, check_shape
from annotrace.crowd.item_difficulty import StateLogs, state_logs
from annotrace.crowd.label_index import LabelIndex

Votes = TypeVar("Votes", Tensor, NDArray[Any])


def design_effect(correlation: float, n_votes: Votes) -> Votes:
    """Return by how much the evidence of votes is smaller than that of independent ones.

    Parameters
    ----------
    correlation : float
        Of the errors of two votes.
    n_votes : Tensor or ndarray
        Votes on each item; one vote, or none, is not discounted.
    """
    return 1 + correlation * (n_votes.clip(min=1) - 1)


class DependentAnnotators(MatrixModel):
    """Confusion matrices on clear items, guesses on doubtful ones, and shared errors.

    Parameters
    ----------
    matrices : Tensor of shape (n_annotators, n_classes, n_classes)
        Of clear items.
    guesses : Tensor of shape (n_annotators, 1, n_classes)
        The distribution of each annotator's guesses.
    guess_rate : Tensor of shape ()
        How often a label of a doubtful item is a guess.
    doubtful : Tensor of shape ()
        The share of doubtful items.
    correlation : float
        Of the errors of two annotators, beyond what doubtful items explain.
    """

    log: Tensor
    log_guesses: Tensor
    guess_rate: Tensor
    doubtful: Tensor
    shared: Tensor

    def __init__(
        self,
        matrices: Tensor,
        guesses: Tensor,
        guess_rate: Tensor,
        doubtful: Tensor,
        correlation: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_annotators, self.n_classes = matrices.shape[:2]
        check_shape("guesses", guesses, (self.n_annotators, 1, self.n_classes))
        self.register_buffer("log", matrices.clamp_min(FixedMatrices.SMALLEST).log())
        self.register_buffer("log_guesses", guesses.clamp_min(FixedMatrices.SMALLEST).log())
        self.register_buffer("guess_rate", guess_rate.to(matrices))
        self.register_buffer("doubtful", doubtful.to(matrices))
        self.register_buffer("shared", matrices.new_tensor(correlation))

    @classmethod
    def uniform(cls, n_annotators: int, n_classes: int) -> DependentAnnotators:
        """Return a model in which every report is equally likely, and every item clear."""
        matrices = torch.full((n_annotators, n_classes, n_classes), 1 / n_classes)
        return cls(matrices, matrices[:, :1], torch.tensor(0.5), torch.tensor(0.0))

    @property
    def correlation(self) -> float:
        """Correlation of the errors of two annotators that `item_log_likelihood` allows for."""
        return float(self.shared)

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices averaged over clear and doubtful items."""
        by_guess = self.doubtful * self.guess_rate
        seen, guessed = self.log + torch.log1p(-by_guess), self.log_guesses + by_guess.log()
        return torch.logaddexp(seen, guessed)

    def state_logs(self) -> StateLogs:
        """Return the log-likelihood of each label on clear and doubtful items."""
        return state_logs(self.log, self.log_guesses, self.guess_rate)

    def state_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return log p(labels, clear or doubtful | class), discounted, (n_items, 2 * n_classes).

        How likely an item of some class is to be doubtful is not discounted.
        """
        levels = torch.stack([1 - self.doubtful, self.doubtful]).log()
        by_state = labels.sum_matrices(self.state_logs().logs)
        by_state.add_(levels.repeat_interleave(self.n_classes))
        if self.correlation == 0:
            return by_state
        of_class = self._sum_levels(by_state)
        n_labels = torch.bincount(labels.row, minlength=labels.n_rows).to(of_class)
        effect = design_effect(self.correlation, n_labels)[:, None]
        return by_state + (of_class / effect - of_class).repeat(1, 2)

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, discounted, (n_items, n_classes)."""
        return self._sum_levels(self.state_log_likelihood(labels))

    def _sum_levels(self, by_state: Tensor) -> Tensor:
        return torch.logsumexp(by_state.view(len(by_state), 2, self.n_classes), 1)
