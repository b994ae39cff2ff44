"""annot-mix (Herde, Lührs, Huseljic and Sick, ECAI 2024): mixup of items and their annotators.

Plain mixup cannot know whose label a mixture of two labels is. Here the example is a label with its
item and its annotator, and two examples are mixed in all three parts with one weight::

    x = w x_n + (1 - w) x_m,  a = w a_r + (1 - w) a_s,  y = w y_nr + (1 - w) y_ms

where w ~ Beta(alpha, alpha), a_r is the embedding of annotator r (its one-hot code times a matrix,
so that mixing either is the same), and y are one-hot labels. The loss is the cross-entropy of y
under::

    p(label | x, a) = sum_i p(i | x) A(a)[i, label]

where a network computes the confusion matrix A from the embedding, as in `MaDL`, starting with a
diagonal of eta.

The paper leaves open how gold items enter: they are mixed with each other, the class of such a
mixture is the mixture of their classes, and they contribute their own cross-entropy, without mixup.
The annotator network has layer normalisation in place of batch normalisation, and no dropout.

Use it where items have several labels, and where mixup helps; not with few features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.annotator_network import AnnotatorNetwork
from annotrace.methods.annotator_networks import AnnotatorNetworkEstimator, log_proba_of_labels
from annotrace.parameters import Count, NotNegative, Positive
from annotrace.training import Batch, CrowdData, Mixture, draw_mixture, mixed_logits


class EmbeddingLayer(nn.Module):
    """A hidden layer on the embedding of the annotator, with that of the item if there is one.

    Parameters
    ----------
    embed_size, item_size : int
    """

    def __init__(self, embed_size: int, item_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(embed_size + item_size, embed_size)
        self.norm = nn.LayerNorm(embed_size)

    def forward(self, annotator: Tensor, *item: Tensor) -> Tensor:
        """Return hidden features, shape (n, embed_size)."""
        parts = [annotator, *(part.to(annotator.dtype) for part in item)]
        return F.relu(self.norm(self.linear(torch.cat(parts, dim=1))))


@dataclass(kw_only=True, eq=False, repr=False)
class AnnotMix(AnnotatorNetworkEstimator):
    """A classifier and an annotator network, trained on mixtures of items and annotators.

    Parameters
    ----------
    alpha : float
        Parameter of the Beta distribution of the weight; 0 for no mixtures. With a recipe its
        mixup takes the place of `alpha`.
    eta : float
        Initial probability of a correct label.
    by_item : bool
        Whether confusion matrices depend on the item.
    embed_size : int
        Length of the embeddings.
    annotator_lr : float
        Learning rate of the annotator network as a multiple of the classifier's.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    alpha: NotNegative = 1.0
    eta: float = 0.9
    by_item: bool = False
    embed_size: Count = 128
    annotator_lr: Positive = 1.0

    method: ClassVar[str] = "annot-mix"

    def _objective(self, data: CrowdData, mixup: float) -> Callable[[Batch], Tensor]:
        """Return the training loss of a batch, of mixtures of two labels if alpha is not 0."""
        strength = self.alpha if self._recipe() is None else mixup
        if not strength:
            return super()._objective(data, 0.0)

        def mixed_loss(batch: Batch) -> Tensor:
            def label_loss(_: Tensor) -> Tensor:
                if len(batch.row) == 0:
                    return torch.zeros((), device=batch.row.device)
                mixture = draw_mixture(strength, self._is_gold(batch), data.random.generator)
                return self._mixture_loss(batch, mixture)

            if self._gold is None:
                return label_loss(batch.row)
            logits = self._split_outputs(self.network_(batch.inputs))[0]
            return self._with_gold(batch, logits, label_loss)

        return mixed_loss

    def _is_gold(self, batch: Batch) -> Tensor:
        """Return 1 for labels of gold items and 0 for others, shape (n_labels,)."""
        if self._gold is None:
            return torch.zeros_like(batch.row)
        return (self._gold[batch.item[batch.row]] >= 0).long()

    def _mixture_loss(self, batch: Batch, mixture: Mixture) -> Tensor:
        """Return the cross-entropy of mixtures of the labels of a batch, shape ()."""
        outputs = mixed_logits(self.network_, batch.inputs[batch.row], mixture)
        logits, items = self._split_outputs(outputs)
        embedding = mixture.mix(self._annotators.embedding[batch.annotator])
        log_matrices = self._annotators.log_matrices_of(embedding, items)
        given = self._known_logits(batch, logits, mixture)
        return mixed_cross_entropy(given, log_matrices, batch.label, mixture)

    def _known_logits(self, batch: Batch, logits: Tensor, mixture: Mixture) -> Tensor:
        """Return logits with the classes of mixtures of two gold items."""
        if self._gold is None:
            return logits
        gold = self._gold[batch.item[batch.row]]
        both = (gold >= 0) & (gold[mixture.partner] >= 0)
        classes = mixture.mix(F.one_hot(gold.clamp_min(0), logits.shape[1]))
        # Other classes have e^-30 of the probability.
        known = classes.clamp_min(1e-13).log().to(logits.dtype)
        return torch.where(both[:, None], known, logits)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return the cross-entropy without mixtures, per label."""
        logits, items = self._split_outputs(logits)
        items = None if items is None else items[batch.row]
        labels = batch.annotator, batch.label

        def label_loss(given: Tensor) -> Tensor:
            log_likelihood = self._annotators.log_likelihood_of(*labels, items)
            each = log_proba_of_labels(given, log_likelihood, batch.row)
            return -each.sum() / max(len(each), 1)

        return self._with_gold(batch, logits, label_loss)

    def _make_annotators(self, n_items: int, item_size: int) -> AnnotatorNetwork:
        return AnnotatorNetwork(
            self.table_.n_annotators,
            self.table_.n_classes,
            hidden=EmbeddingLayer(self.embed_size, item_size),
            embed_size=self.embed_size,
            n_items=n_items,
            item_size=item_size,
            diagonal=self.eta,
            lr_scale=self.annotator_lr,
        )


def mixed_cross_entropy(
    logits: Tensor, log_matrices: Tensor, label: Tensor, mixture: Mixture
) -> Tensor:
    """Return the mean cross-entropy of mixed labels, shape ().

    Parameters
    ----------
    logits : Tensor of shape (n_labels, n_classes)
        Of the mixed items.
    log_matrices : Tensor of shape (n_labels, n_classes, n_classes)
        Of the mixed annotators.
    label : LongTensor of shape (n_labels,)
        Not mixed.
    mixture : Mixture
    """
    log_p = F.log_softmax(logits.to(log_matrices.dtype), dim=1)
    reported = torch.logsumexp(log_p[:, :, None] + log_matrices, dim=1)
    own = F.nll_loss(reported, label)
    return torch.lerp(F.nll_loss(reported, label[mixture.partner]), own, mixture.weight)
