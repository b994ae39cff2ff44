"""Confusion matrices that a network computes from embeddings of the annotator and the item.

Every annotator has an embedding a_r, from which a hidden network and a linear layer compute the
logits of a confusion matrix. Annotators who err alike are neighbours in the space of embeddings, so
that those with few labels borrow from the others. With an embedding x_n of the item, which the
classifier provides, the matrix depends on the item::

    A(r)    = softmax of the rows of W h(a_r) + b
    A(r, n) = softmax of the rows of W h(a_r, x_n) + b

The bias b starts with a diagonal, so that classes have their names from the first step on.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.annotator_model import (
    AnnotatorModel,
    check_diagonal,
    check_integers,
    check_shape,
)
from annotrace.crowd.safe_math import at_least_float32, log_normalize
from annotrace.parameters import AtLeastTwo, Count, check_value

Form: TypeAlias = Literal["full", "diagonal", "isotropic"]

N_AVERAGED = 256
"""Matrices that depend on the item are averaged over at least so many items, evenly spaced."""

ANNOTATORS_AT_ONCE = 16

SMALLEST = 1e-3
"""Cells of matrices to start from are at least this: a logit of -14 would be learned slowly."""


class AnnotatorNetwork(AnnotatorModel):
    """Confusion matrices from embeddings.

    Parameters
    ----------
    n_annotators, n_classes : int
    hidden : nn.Module, optional
        From embeddings of annotators (n, embed_size) and items (n, item_size) to (n, embed_size);
        without items it is called with the first alone. By default the embedding of the annotator
        itself.
    embed_size : int
        Length of the embedding of an annotator.
    n_items, item_size : int
        Number of items, and length of the embedding of an item; 0 if matrices do not depend on it.
    form : {"full", "diagonal", "isotropic"}
        What is computed: all cells; the probability of a correct label by class, errors being
        uniform; or that probability alone.
    diagonal : float
        The initial probability of a correct label.
    lr_scale : float
        Learning rate as a multiple of the network's.

    Attributes
    ----------
    embedding : Parameter of shape (n_annotators, embed_size)
    item_embedding : Tensor of shape (n_items, item_size)
        What the classifier provided last; see `embed_items`.
    """

    item_embedding: Tensor

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        hidden: nn.Module | None = None,
        embed_size: int = 16,
        n_items: int = 0,
        item_size: int = 0,
        form: Form = "full",
        diagonal: float = 0.8,
        lr_scale: float = 10.0,
    ) -> None:
        super().__init__()
        check_value("n_annotators", n_annotators, Count)
        check_value("n_classes", n_classes, AtLeastTwo)
        check_value("form", form, Form)
        check_diagonal(diagonal, n_classes)
        self.n_annotators, self.n_classes = n_annotators, n_classes
        self.form, self.lr_scale, self.item_size = form, lr_scale, item_size
        # A linear layer on annotators in one-hot coding.
        one_hot = nn.Linear(n_annotators, embed_size, bias=False)
        self.embedding = nn.Parameter(one_hot.weight.detach().T.contiguous())
        self.hidden = nn.Identity() if hidden is None else hidden
        sizes = {"full": n_classes**2, "diagonal": n_classes, "isotropic": 1}
        self.output = nn.Linear(embed_size, sizes[form])
        self.register_buffer("item_embedding", torch.zeros(n_items, item_size))
        skilled = diagonal * torch.eye(n_classes)
        self._set_bias(skilled + (1 - diagonal) / (n_classes - 1) * (1 - torch.eye(n_classes)))

    def log_matrices_of(self, embedding: Tensor, item_embedding: Tensor | None = None) -> Tensor:
        """Return the logarithms of the matrices of embeddings, (n, n_classes, n_classes).

        Parameters
        ----------
        embedding : Tensor of shape (n, embed_size)
            Rows of `embedding`, for example, or mixtures of them.
        item_embedding : Tensor of shape (n, item_size), optional
            If matrices depend on the item.
        """
        inputs = (embedding,) if item_embedding is None else (embedding, item_embedding)
        logits = at_least_float32(self.output(self.hidden(*inputs)))
        if self.form == "full":
            return log_normalize(logits.view(-1, self.n_classes, self.n_classes))
        correct = logits.expand(-1, self.n_classes)
        wrong = F.logsigmoid(-correct) - math.log(self.n_classes - 1)
        is_correct = torch.eye(self.n_classes, dtype=torch.bool, device=logits.device)
        return torch.where(is_correct, F.logsigmoid(correct)[:, :, None], wrong[:, :, None])

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator[, item]), shape (n_labels, n_classes)."""
        check_integers(annotator=annotator, label=label)
        if self.item_size and item is not None:
            return self.log_likelihood_of(annotator, label, self.item_embedding[item])
        if self.item_size:
            return _cells(self._average(annotator), label).log()
        return self.log_likelihood_of(annotator, label)

    def log_likelihood_of(
        self, annotator: Tensor, label: Tensor, item_embedding: Tensor | None = None
    ) -> Tensor:
        """Return `log_likelihood` for given embeddings of the labels' items.

        Parameters
        ----------
        annotator, label : LongTensor of shape (n_labels,)
        item_embedding : Tensor of shape (n_labels, item_size), optional
            If matrices depend on the item.

        Returns
        -------
        Tensor of shape (n_labels, n_classes)
        """
        if item_embedding is None and self.n_annotators <= len(label):
            return self.log_matrices_of(self.embedding)[annotator, :, label]
        return _cells(self.log_matrices_of(self.embedding[annotator], item_embedding), label)

    @torch.no_grad()
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] without gradient."""
        if annotators is None:
            annotators = torch.arange(self.n_annotators, device=self.device)
        if self.item_size:
            return self._average(annotators, items)
        return self.log_matrices_of(self.embedding[annotators]).exp()

    def embed_items(self, item: Tensor, embedding: Tensor) -> None:
        """Store the embeddings (n, item_size) of items, LongTensor of shape (n,)."""
        self.item_embedding[item] = embedding.detach().to(self.item_embedding.dtype)

    def set_matrices(self, matrices: Tensor) -> None:
        """Start from the mean of matrices; annotators then differ by their embeddings."""
        check_shape("matrices", matrices, (self.n_annotators, *2 * [self.n_classes]))
        self._set_bias(matrices.mean(0))

    @torch.no_grad()
    def _set_bias(self, matrix: Tensor) -> None:
        matrix = matrix.to(self.output.bias).clamp(SMALLEST, 1 - SMALLEST)
        correct = matrix.diagonal()
        bias = {
            "full": matrix.log().flatten(),
            "diagonal": correct.logit(),
            "isotropic": correct.mean().logit(),
        }
        self.output.bias.copy_(bias[self.form])

    def _average(self, annotators: Tensor, items: Tensor | None = None) -> Tensor:
        """Return matrices averaged over items, (n, n_classes, n_classes)."""
        item_embedding = self.item_embedding if items is None else self.item_embedding[items]
        n_items = len(item_embedding)
        step = max(1, n_items // N_AVERAGED)
        some, parts = item_embedding[::step], []
        for embedding in self.embedding[annotators].split(ANNOTATORS_AT_ONCE):
            pairs = embedding.repeat_interleave(len(some), 0), some.repeat(len(embedding), 1)
            matrices = self.log_matrices_of(*pairs).exp()
            parts.append(matrices.view(len(embedding), len(some), *matrices.shape[1:]).mean(1))
        return torch.cat(parts)


class Interaction(nn.Module):
    """MaDL's hidden network: annotator, item, and the outer product of their sum.

    Layer normalisation takes the place of batch normalisation, with which the matrices of an
    annotator would depend on the other labels of a batch. The last one starts with a gain of zero,
    so that matrices depend on the item only once that explains the labels better: otherwise, on
    digits with five pairwise flippers at .5, five labels per item, the accuracy was .758 and not
    .982.

    Parameters
    ----------
    embed_size, item_size : int
    width : int
        Of the hidden layer.
    """

    def __init__(self, embed_size: int, item_size: int, width: int = 128) -> None:
        super().__init__()
        self.embed_item = nn.Linear(item_size, embed_size)
        self.product = nn.Bilinear(embed_size, embed_size, embed_size, bias=False)
        last = nn.LayerNorm(embed_size)
        nn.init.zeros_(last.weight)
        self.layers = nn.Sequential(
            nn.Linear(3 * embed_size, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, embed_size),
            last,
        )

    def forward(self, annotator: Tensor, item: Tensor) -> Tensor:
        """Return the embedding of the annotator plus what the item changes, (n, embed_size)."""
        item = self.embed_item(item.to(annotator.dtype))
        both = annotator + item
        joined = torch.cat([annotator, item, self.product(both, both)], dim=1)
        return F.relu(annotator + self.layers(joined))


def _cells(matrices: Tensor, label: Tensor) -> Tensor:
    """Return the column of each label in its own matrix (n_labels, n_classes, n_classes)."""
    return matrices[torch.arange(len(label), device=label.device), :, label]
