"""Errors that annotators share: common weights, and individual ones, chosen item by item.

Annotator r labels item n by weights G that all annotators share with probability c[n, r], and by
their own W^(r) otherwise. The probability is the sigmoid of the cosine of an embedding u[n] of the
item and one v[r] of the annotator, and so is between .27 and .73::

    c[n, r] = sigmoid(u[n] . v[r] / (|u[n]| |v[r]|))
    p(label = j | class i, r, n) = softmax_j (c[n, r] G[i, j] + (1 - c[n, r]) W^(r)[i, j])
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.activations import activations, log_softmax_at
from annotrace.crowd.annotator_model import AnnotatorModel, check_integers, check_shape
from annotrace.crowd.safe_math import at_least_float32, log_normalize

CELLS_AT_ONCE = 2**24
"""Cells of matrices, or products of items and annotators, that are computed at once."""


class CommonNoise(AnnotatorModel):
    """Weights that annotators share and weights of their own, chosen by item and annotator.

    Parameters
    ----------
    n_annotators, n_classes, n_items : int
    width : int
        Of the embeddings.
    scale : float
        All weights start as this multiple of the identity.
    lr_scale : float
        The learning rate as a multiple of the network's.

    Attributes
    ----------
    common : Parameter of shape (n_classes, n_classes)
    individual : Parameter of shape (n_annotators, n_classes, n_classes)
    items : Tensor of shape (n_items, width)
        The embedding of each item, of length 1; 0 until `set_items`, and the probability then 1/2.
    common_rate : Tensor of shape (n_annotators,)
        The probability that an annotator labels by the common weights, averaged over items.
    """

    items: Tensor
    common_rate: Tensor

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        n_items: int,
        *,
        width: int = 20,
        scale: float = 2.0,
        lr_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.n_annotators, self.n_classes, self.lr_scale = n_annotators, n_classes, lr_scale
        start = scale * torch.eye(n_classes)
        self.common = nn.Parameter(start)
        self.individual = nn.Parameter(start.repeat(n_annotators, 1, 1))
        self.embed = nn.Linear(n_annotators, width)
        self.register_buffer("items", torch.zeros(n_items, width))
        self.register_buffer("common_rate", torch.full((n_annotators,), 0.5))

    def annotators(self) -> Tensor:
        """Return the embedding of each annotator, of length 1, shape (n_annotators, width)."""
        return F.normalize(self.embed.weight.t() + self.embed.bias)

    def rates(self, items: Tensor, annotator: Tensor) -> Tensor:
        """Return the probability of the common weights for each label, shape (n_labels,).

        Parameters
        ----------
        items : Tensor of shape (n_labels, width)
            The embedding of each label's item, of length 1.
        annotator : LongTensor of shape (n_labels,)
        """
        return torch.sigmoid((items * self.annotators()[annotator]).sum(1))

    @torch.no_grad()
    def set_items(self, items: Tensor) -> None:
        """Set the embeddings of all items, of length 1, shape (n_items, width)."""
        check_shape("items", items, self.items.shape)
        self.items.copy_(items)
        self.common_rate.copy_(self._mean_rates(self.items))

    def classifier_log_likelihood(
        self, logits: Tensor, items: Tensor, row: Tensor, annotator: Tensor, label: Tensor
    ) -> Tensor:
        """Compute log p(label | x, annotator), shape (n_labels,).

        As in `activation_log_likelihood`, rows are averaged before the softmax.

        Parameters
        ----------
        logits : Tensor of shape (n_rows, n_classes)
            The classifier's, in any float type.
        items : Tensor of shape (n_rows, width)
            The embedding of each row's item, of length 1.
        row, annotator, label : LongTensor of shape (n_labels,)
        """
        p = torch.softmax(at_least_float32(logits), dim=1)
        rate = self.rates(at_least_float32(items)[row], annotator)[:, None]
        common = (p[:, :, None] * self.common).sum(1)[row]
        individual = activations(p, self.individual, row, annotator)
        return log_softmax_at(rate * common + (1 - rate) * individual, label)

    def distance(self) -> Tensor:
        """Return the sum over annotators of the Frobenius norm of W^(r) - G, shape ()."""
        difference = (self.individual - self.common).flatten(1)
        norms: Tensor = torch.linalg.vector_norm(difference, dim=1)
        return norms.sum()

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator[, item]), shape (n_labels, n_classes)."""
        check_integers(annotator=annotator, label=label)
        rate = (
            self.common_rate[annotator] if item is None else self.rates(self.items[item], annotator)
        )
        size = max(1, CELLS_AT_ONCE // self.n_classes**2)
        parts = zip(rate.split(size), annotator.split(size), label.split(size), strict=True)
        return torch.cat([self._log_columns(*part) for part in parts])

    @torch.no_grad()
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] at the mean rate of some items."""
        rate = self.common_rate if items is None else self._mean_rates(self.items[items])
        if annotators is None:
            annotators = torch.arange(self.n_annotators, device=rate.device)
        return self._log_matrices(rate[annotators], annotators).exp()

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from matrices (n_annotators, n_classes, n_classes); G is their geometric mean."""
        check_shape("matrices", matrices, self.individual.shape)
        log = matrices.to(self.individual).clamp_min(1e-6).log()
        rate = self.common_rate[:, None, None]
        self.common.copy_(log.mean(0))
        self.individual.copy_((log - rate * self.common) / (1 - rate))

    def _log_matrices(self, rate: Tensor, annotator: Tensor) -> Tensor:
        rate = rate[:, None, None]
        return log_normalize(rate * self.common + (1 - rate) * self.individual[annotator])

    def _log_columns(self, rate: Tensor, annotator: Tensor, label: Tensor) -> Tensor:
        column = label[:, None, None].expand(-1, self.n_classes, 1)
        return self._log_matrices(rate, annotator).gather(2, column).squeeze(2)

    def _mean_rates(self, items: Tensor) -> Tensor:
        """Return the mean over items (n_items, width) of each annotator's rate."""
        size = max(1, CELLS_AT_ONCE // self.n_annotators)
        parts = [torch.sigmoid(part @ self.annotators().t()).sum(0) for part in items.split(size)]
        return torch.stack(parts).sum(0) / len(items)
