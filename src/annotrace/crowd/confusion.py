"""Confusion matrices of annotators as a layer that learns by gradient descent.

``confusion[annotator, true, reported]``, rows sum to one. The paper's equations write the
transpose; its code listing, and this library, write it so.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from annotrace.crowd.annotator_model import (
    MatrixModel,
    check_diagonal,
    check_integers,
    check_shape,
)
from annotrace.crowd.safe_math import (
    at_least_float32,
    inverse_softplus,
    log_normalize,
    log_softplus,
)
from annotrace.crowd.sparse_confusion import Parametrization, batch_log_likelihood
from annotrace.crowd.traced_model import TracedModel
from annotrace.errors import InputError
from annotrace.parameters import AtLeastTwo, Count, check_value


class Confusion(TracedModel, MatrixModel):
    """One confusion matrix per annotator.

    Parameters
    ----------
    n_annotators, n_classes : int
    parametrization : {"softplus", "softmax"}
        How weights become rows that sum to one: softplus divided by the row's sum, as in the
        paper's listing, or a softmax of each row.
    diagonal : float, optional
        The initial probability of a correct label, between 1 / n_classes and 1. By default the
        paper's weights 6I - 5: .956 at ten classes with softplus, .978 with softmax.
    lr_scale : float
        How much faster than the network the matrices learn; `parameter_groups` reads it. With one
        rate for both the network memorises the noise before the matrices have moved.
    sparse : bool
        Update only the annotators of a batch: gradients are sparse, as those of
        ``nn.Embedding(sparse=True)``, and `RowAdam` applies them. For many annotators.
    pooled : bool
        Learn weights that all annotators share and a deviation for each: annotators with few labels
        borrow from the others.
    frequency : Tensor of shape (n_annotators,), optional
        Labels of each annotator divided by the number of items, from which a sparse layer estimates
        the mean trace of a batch. Annotators without labels do not count in the mean.

    Examples
    --------
    >>> layer = Confusion(n_annotators=3, n_classes=2, diagonal=0.8)
    >>> layer.matrices()[0]
    tensor([[0.8000, 0.2000],
            [0.2000, 0.8000]])
    """

    weight: nn.Parameter
    shared: nn.Parameter | None

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        parametrization: Parametrization = "softplus",
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        sparse: bool = False,
        pooled: bool = False,
        frequency: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_value("n_annotators", n_annotators, Count)
        check_value("n_classes", n_classes, AtLeastTwo)
        check_value("parametrization", parametrization, Parametrization)
        self.n_annotators, self.n_classes = n_annotators, n_classes
        self.parametrization = parametrization
        self.lr_scale = lr_scale
        self.sparse = sparse
        start = _initial_weights(n_classes, parametrization, diagonal)
        deviation = torch.zeros_like(start) if pooled else start
        self.weight = nn.Parameter(deviation.repeat(n_annotators, 1, 1))
        self.shared = nn.Parameter(start) if pooled else None
        self._set_frequency(frequency)

    def extra_repr(self) -> str:
        """Return the description that `repr` shows."""
        return (
            f"{self.n_annotators}, {self.n_classes}, parametrization={self.parametrization!r}, "
            f"sparse={self.sparse}"
        )

    def log_matrices(self) -> Tensor:
        """Return the logarithms of all matrices, shape (n_annotators, n_classes, n_classes)."""
        weight = at_least_float32(self.weight if self.shared is None else self.weight + self.shared)
        return log_normalize(weight if self.parametrization == "softmax" else log_softplus(weight))

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), shape (n_labels, n_classes)."""
        if self.sparse:
            return self.log_likelihood_and_traces(annotator, label)[0]
        return super().log_likelihood(annotator, label, item)

    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass."""
        check_integers(annotator=annotator, label=label)
        return batch_log_likelihood(
            self.weight, self.shared, annotator, label, self.parametrization
        )

    def mean_of_all_traces(self) -> Tensor:
        """Return the mean trace over all annotators, shape (); not of a sparse layer."""
        if self.sparse:
            raise InputError(
                "A sparse `Confusion` needs the batch: `mean_trace(annotator, n_rows)`."
            )
        return self.log_matrices().diagonal(dim1=1, dim2=2).exp().sum(1).mean()

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Set all matrices, shape (n_annotators, n_classes, n_classes); zeros become 1e-6."""
        check_shape("matrices", matrices, self.weight.shape)
        log = matrices.to(self.weight).clamp_min(1e-6).log()
        # Any multiple of a row gives the same matrix; the paper's start has softplus(1) at the top.
        scaled = (log - log.amax(-1, keepdim=True)).exp() * math.log1p(math.e)
        weight = log if self.parametrization == "softmax" else inverse_softplus(scaled)
        if self.shared is not None:
            self.shared.copy_(weight.mean(0))
            weight = weight - self.shared
        self.weight.copy_(weight)


def _initial_weights(
    n_classes: int, parametrization: Parametrization, diagonal: float | None
) -> Tensor:
    eye = torch.eye(n_classes)
    if diagonal is None:
        return 6 * eye - 5
    check_diagonal(diagonal, n_classes)
    odds = (1 - diagonal) / (diagonal * (n_classes - 1))
    if parametrization == "softmax":
        return -math.log(odds) * eye
    other = inverse_softplus(
        torch.tensor(math.log1p(math.e) * odds, dtype=torch.float64, device="cpu")
    )
    return eye + (1 - eye) * other.item()
