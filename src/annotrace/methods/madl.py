"""MaDL, multi-annotator deep learning (Herde, Huseljic and Sick, TMLR 2023).

Two networks are trained together. The ground truth network gives p(i | x). The annotator network
computes a confusion matrix from embeddings of the annotator and, by default, of the item, which is
linear in the last hidden layer of the ground truth network (see `AnnotatorNetwork`). Their loss is
the cross-entropy of the labels, each weighted by its annotator (the paper's eq. 25)::

    - 1/n sum_(n, r) w_r log (sum_i p(i | x_n) A(r, n)[i, label]) - log Gamma(gamma | alpha, beta)

Annotators who copy each other, or spam alike, have embeddings that are near each other. Weights are
inversely proportional to the density of the embeddings, so that such a group counts as one::

    w_r ~ 1 / sum_s exp(-gamma |a_r - a_s|^2),  mean 1

The embeddings are constants in w; the bandwidth gamma is learned under a Gamma prior.

The paper leaves open how mixtures, gold items and averages over items are handled: mixtures have
the embedding that the network computes for them, labels of gold items are judged by the known
class, and ``confusion_`` averages over items. Layer normalisation takes the place of batch
normalisation in the annotator network; gamma is learned as its logarithm, from the prior's mode.

Use it where annotators are correlated, or err on some kinds of items. With few labels per annotator
``by_item=False`` is safer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from annotrace.crowd.annotator_network import AnnotatorNetwork, Form, Interaction
from annotrace.errors import InputError
from annotrace.methods.annotator_networks import AnnotatorNetworkEstimator, log_proba_of_labels
from annotrace.parameters import Count, Positive
from annotrace.training import Batch

MAX_REFERENCES = 1_000
"""Annotators, evenly spaced, from whom densities are estimated: all pairs of more cost too much."""


class AnnotatorDensity(nn.Module):
    """The bandwidth of the density of embeddings, and the weights that follow from it.

    Parameters
    ----------
    annotators : LongTensor of shape (n,)
        Those with labels.
    alpha, beta : float
        Shape and rate of the Gamma prior of the bandwidth.
    """

    lr_scale = 1.0

    references: Tensor

    def __init__(self, annotators: Tensor, alpha: float, beta: float) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log((alpha - 1) / beta)))
        some = annotators[:: max(1, -(-len(annotators) // MAX_REFERENCES))]
        self.register_buffer("references", some, persistent=False)

    def weights(self, embedding: Tensor, annotator: Tensor) -> Tensor:
        """Return the weight of each label's annotator, shape (n_labels,).

        Parameters
        ----------
        embedding : Tensor of shape (n_annotators, embed_size)
        annotator : LongTensor of shape (n_labels,)
        """
        constant = embedding.detach().float()
        references = constant[self.references]
        return annotator_weights(constant[annotator], references, self.log_bandwidth.exp())

    def log_prior(self) -> Tensor:
        """Return the log-density of the bandwidth under its prior, shape ()."""
        constant = self.alpha * math.log(self.beta) - math.lgamma(self.alpha)
        bandwidth = self.log_bandwidth.exp()
        return constant + (self.alpha - 1) * self.log_bandwidth - self.beta * bandwidth


def annotator_weights(embedding: Tensor, references: Tensor, bandwidth: Tensor) -> Tensor:
    """Return weights inversely proportional to the density, their mean over references being 1.

    Parameters
    ----------
    embedding : Tensor of shape (n, embed_size)
    references : Tensor of shape (n_references, embed_size)
        From which the density is estimated.
    bandwidth : Tensor of shape ()

    Returns
    -------
    Tensor of shape (n,)
    """

    def inverse_density(points: Tensor) -> Tensor:
        squares = torch.cdist(points, references).square()
        # A distant annotator has a similarity of 0 to all but itself.
        return 1 / torch.exp(-bandwidth * squares).sum(1).clamp_min(1e-6)

    return inverse_density(embedding) / inverse_density(references).mean()


@dataclass(kw_only=True, eq=False, repr=False)
class MaDL(AnnotatorNetworkEstimator):
    """A ground truth network and an annotator network, labels weighted by their annotators.

    Parameters
    ----------
    by_item : bool
        Whether confusion matrices depend on the item (the paper's X). If they do not, they are
        linear in the embedding of the annotator.
    matrices : {"full", "diagonal", "isotropic"}
        What the annotator network computes: all cells (the paper's F); the probability of a correct
        label by class; or that probability alone (I).
    weighted : bool
        Whether labels are weighted by the density of their annotators (W).
    embed_size : int
        Length of the embeddings.
    eta : float
        Initial probability of a correct label.
    alpha, beta : float
        Shape, above 1, and rate of the Gamma prior of the bandwidth.
    annotator_lr : float, optional
        Learning rate of the annotator network as a multiple of the classifier's: 1 by default, as
        in the paper, and 10 if matrices do not depend on the item. A faster network that sees the
        item takes over from the classifier.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    by_item: bool = True
    matrices: Form = "full"
    weighted: bool = True
    embed_size: Count = 16
    eta: float = 0.8
    alpha: float = 1.25
    beta: Positive = 0.25
    annotator_lr: Positive | None = None

    method: ClassVar[str] = "madl"

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        logits, items = self._split_outputs(logits)
        items = None if items is None else items[batch.row]
        model, labels = self._annotators, (batch.annotator, batch.label)

        def label_loss(given: Tensor) -> Tensor:
            log_likelihood = model.log_likelihood_of(*labels, items)
            return -self._mean(batch, log_proba_of_labels(given, log_likelihood, batch.row))

        loss = self._with_gold(batch, logits, label_loss)
        return loss - self._density.log_prior() if self.weighted else loss

    def _mean(self, batch: Batch, values: Tensor) -> Tensor:
        """Return the weighted mean of values of labels (n_labels,), 0 if there are none."""
        if self.weighted:
            values = values * self._density.weights(self._annotators.embedding, batch.annotator)
        return values.sum() / max(len(values), 1)

    def _make_annotators(self, n_items: int, item_size: int) -> AnnotatorNetwork:
        default_lr = 1.0 if self.by_item else 10.0
        return AnnotatorNetwork(
            self.table_.n_annotators,
            self.table_.n_classes,
            hidden=Interaction(self.embed_size, item_size) if item_size else None,
            embed_size=self.embed_size,
            n_items=n_items,
            item_size=item_size,
            form=self.matrices,
            diagonal=self.eta,
            lr_scale=default_lr if self.annotator_lr is None else self.annotator_lr,
        )

    def _build_modules(self, device: torch.device) -> None:
        if self.alpha <= 1:
            raise InputError(f"Expected `alpha` to be larger than 1, but got {self.alpha}.")
        super()._build_modules(device)
        labelled = torch.from_numpy(self.table_.labels_per_annotator().nonzero()[0])
        self._density = AnnotatorDensity(labelled, self.alpha, self.beta).to(device)

    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""
        return {**super().learned_modules(), "density": self._density}
