"""CoNAL (Chu, Ma and Wang, "Learning from crowds by modeling common confusions", AAAI 2021).

Annotators share some errors. Weights G of all annotators and weights W^(r) of each act on the
network's softmax p(x) as in `CrowdLayer`, and a Bernoulli variable chooses between them. Its
probability c[n, r] comes from embeddings of the item, by a second network on the same inputs, and
of the annotator (`CommonNoise` has the formula). Both kinds start as twice the identity. The loss
is the cross-entropy of the labels, less the distances of individual from common weights, which
keep the two kinds apart::

    1/N sum_n sum_{r labelled n} -log softmax(p(x_n) (c[n, r] G + (1 - c[n, r]) W^(r)))[label]
        - lam sum_r |W^(r) - G|

As in the published code, activations are averaged before the softmax, and the second network has
128 hidden and 20 output features. Here its hidden features are rectified and its inputs
standardised. That code has the mean of the cross-entropy over labels in place of the sum over the
labels of an item, which changes only what lam is relative to.

Use it where annotators share errors. The probability of the common weights is between .27 and .73
for every item and annotator, so that none is judged by their own weights alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.aggregation.run_reader import SavedRun
from annotrace.crowd.common_noise import CommonNoise
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.networks import Bags, build_backbone
from annotrace.parameters import NotNegative, Positive
from annotrace.training import Batch, CrowdData, Epoch, Inputs, Settings

WIDTH = 20
"""Features of the embeddings, as published."""


@dataclass(kw_only=True, eq=False, repr=False)
class CoNAL(NetworkEstimator):
    """A network, common and individual weights of annotators, and a network that chooses.

    The confusion matrices depend on the item. `confusion_` has those at the mean rate over all
    items, by which labels of new items are judged; `annotator_model_` has the rate of each item.

    Parameters
    ----------
    lam : float
        Weight of the distances between individual and common weights, as published 1e-5.
    confusion_lr : float
        Learning rate of the weights and of the annotators' embeddings as a multiple of the
        network's; 1 as published.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    lam: NotNegative = 1e-5
    confusion_lr: Positive = 1.0

    method: ClassVar[str] = "conal"
    repairs_classes: ClassVar[bool] = True

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the cross-entropy of the labels less the distances; then embed all items."""
        with data.random.initial_weights():
            self._build_modules(data.device)
        if trial.start is not None:
            self._noise.set_matrices(torch.from_numpy(trial.start.matrices))
        learned = nn.ModuleDict(self.learned_modules())
        history = self._train(learned, self._objective(data, trial.mixup), data, settings)
        self._noise.set_items(data.map(lambda item: self._embed(data.inputs(item))))
        return history

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        def label_loss(logits: Tensor) -> Tensor:
            return self._score(batch, logits)[0] / len(batch.item)

        nll = self._with_gold(batch, logits, label_loss)
        return nll - self.lam * self._noise.distance() if self.lam else nll

    def _score(self, batch: Batch, logits: Tensor) -> tuple[Tensor, int]:
        labels = (batch.row, batch.annotator, batch.label)
        items = self._embed(batch.inputs)
        log_likelihood = self._noise.classifier_log_likelihood(logits, items, *labels)
        return -log_likelihood.sum(), len(batch.label)

    def _embed(self, inputs: Inputs) -> Tensor:
        """Return the embeddings of rows, of length 1, shape (n_rows, WIDTH)."""
        return F.normalize(self._item_network(inputs).float())

    @property
    def _noise(self) -> CommonNoise:
        assert isinstance(self.annotator_model_, CommonNoise)
        return self.annotator_model_

    def _build_modules(self, device: torch.device) -> None:
        self.annotator_model_ = CommonNoise(
            self.table_.n_annotators,
            self.table_.n_classes,
            self.table_.n_items,
            width=WIDTH,
            lr_scale=self.confusion_lr,
        ).to(device)

    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""
        return {**super().learned_modules(), "embedding": self._item_network}

    def _network_for(self, sample: Tensor | Bags) -> nn.Module:
        """Build the classifier, and the network that embeds items, for rows like a sample's."""
        network = super()._network_for(sample)
        self._item_network = build_backbone("mlp", sample, WIDTH)
        return network

    def _build_as_in(self, run: SavedRun) -> None:
        super()._build_as_in(run)
        if next(self._item_network.parameters()).is_meta:
            self._item_network.to_empty(device="cpu")
