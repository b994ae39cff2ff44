r"""Annotators whose labels of an item depend on each other beyond its true class.

An item may be doubtful, and then labels of it may be guesses (`annotrace.crowd.item_difficulty`):
that is part of the likelihood. Errors that annotators share on items that are not doubtful are not:
the model holds their correlation, by which posteriors are discounted once they are final
(`annotrace.diagnosis.confidence`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from annotrace.crowd.annotator_model import FixedMatrices, MatrixModel, check_shape
from annotrace.crowd.item_difficulty import StateLogs, state_logs
from annotrace.crowd.label_index import LabelIndex

# Of a correlation, as a number: runs are saved as tensors, and NaN is refused in them.
UNKNOWN = -2.0


class DependentAnnotators(MatrixModel):
    """Confusion matrices on clear items, guesses on doubtful ones, and how far errors are shared.

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
    correlation : float, optional
        Of the errors of two annotators, beyond what doubtful items explain; if known.
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
        correlation: float | None = None,
    ) -> None:
        super().__init__()
        self.n_annotators, self.n_classes = matrices.shape[:2]
        check_shape("guesses", guesses, (self.n_annotators, 1, self.n_classes))
        self.register_buffer("log", matrices.clamp_min(FixedMatrices.SMALLEST).log())
        self.register_buffer("log_guesses", guesses.clamp_min(FixedMatrices.SMALLEST).log())
        self.register_buffer("guess_rate", guess_rate.to(matrices))
        self.register_buffer("doubtful", doubtful.to(matrices))
        self.register_buffer(
            "shared", matrices.new_tensor(UNKNOWN if correlation is None else correlation)
        )

    @classmethod
    def uniform(cls, n_annotators: int, n_classes: int) -> DependentAnnotators:
        """Return a model in which every report is equally likely, and every item clear."""
        matrices = torch.full((n_annotators, n_classes, n_classes), 1 / n_classes)
        return cls(matrices, matrices[:, :1], torch.tensor(0.5), torch.tensor(0.0))

    @property
    def correlation(self) -> float | None:
        """Correlation of the errors of two annotators beyond what the model explains, if known."""
        return None if self.shared == UNKNOWN else float(self.shared)

    def log_matrices(self) -> Tensor:
        """Return the logarithms of the matrices averaged over clear and doubtful items."""
        by_guess = self.doubtful * self.guess_rate
        seen, guessed = self.log + torch.log1p(-by_guess), self.log_guesses + by_guess.log()
        return torch.logaddexp(seen, guessed)

    def state_logs(self) -> StateLogs:
        """Return the log-likelihood of each label on clear and doubtful items."""
        return state_logs(self.log, self.log_guesses, self.guess_rate)

    def state_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return log p(labels, clear or doubtful | class), shape (n_items, 2 * n_classes)."""
        levels = torch.stack([1 - self.doubtful, self.doubtful]).log()
        by_state = labels.sum_matrices(self.state_logs().logs)
        return by_state.add_(levels.repeat_interleave(self.n_classes))

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, summed over clear and doubtful."""
        by_level = self.state_log_likelihood(labels).view(labels.n_rows, 2, self.n_classes)
        return torch.logsumexp(by_level, 1)
