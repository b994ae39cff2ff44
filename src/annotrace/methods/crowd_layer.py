"""Crowd layer (Rodrigues and Pereira, "Deep learning from crowds", AAAI 2018), variant MW.

On the softmax p(x) of a network, the bottleneck, each annotator r has a matrix of weights W^(r) of
any sign. A softmax of the activations is the distribution of the label, and the loss is the
cross-entropy over all labels::

    1/N sum_n sum_{r labelled n} -log softmax(p(x_n) W^(r))[label]

Network and weights learn together at one rate. The weights start as the identity, which decides
the order of the classes. They are not probabilities: the confusion matrix of an annotator is the
softmax of each row, what the layer returns for a class that is certain. With the published rate
the matrices stay flat (docs/methods.md has the figures), and a network that fits the labels must
predict with certainty.

Use it to compare with published results. `TraceRegularized` and `GeoCrowdLayer` have matrices whose
rows sum to one and a regulariser, and estimate the matrices better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from annotrace.crowd.activations import activation_log_likelihood, diagonal_of_identity
from annotrace.crowd.confusion import Confusion
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.parameters import Positive
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdLayer(NetworkEstimator):
    """A network and a matrix of weights per annotator on its softmax.

    Parameters
    ----------
    confusion_lr : float
        Learning rate of the weights as a multiple of the network's; 1 as published.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.

    Examples
    --------
    >>> from annotrace.data import load_digits
    >>> from annotrace.simulate import hammer_spammers, simulate_labels
    >>> train, test = load_digits().split(600)
    >>> table = simulate_labels(train.y, hammer_spammers(5, 10, 0.6, random_state=0),
    ...                         labels_per_item=3, random_state=0)
    >>> model = CrowdLayer(random_state=0).fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.85)
    True
    """

    confusion_lr: Positive = 1.0

    method: ClassVar[str] = "crowd-layer"
    repairs_classes: ClassVar[bool] = True

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the cross-entropy of the labels."""
        self._build_modules(data.device)
        if trial.start is not None:
            self._layer.set_matrices(torch.from_numpy(trial.start.matrices))
        learned = nn.ModuleDict(self.learned_modules())
        return self._train(learned, self._objective(data, trial.mixup), data, settings)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        def label_loss(logits: Tensor) -> Tensor:
            return self._score(batch, logits)[0] / len(batch.item)

        return self._with_gold(batch, logits, label_loss)

    def _score(self, batch: Batch, logits: Tensor) -> tuple[Tensor, int]:
        labels = (batch.row, batch.annotator, batch.label)
        log_likelihood = activation_log_likelihood(logits, self._layer.weight, *labels)
        return -log_likelihood.sum(), len(batch.label)

    @property
    def _layer(self) -> Confusion:
        assert isinstance(self.annotator_model_, Confusion)
        return self.annotator_model_

    def _build_modules(self, device: torch.device) -> None:
        self.annotator_model_ = Confusion(
            self.table_.n_annotators,
            self.table_.n_classes,
            parametrization="softmax",
            diagonal=diagonal_of_identity(self.table_.n_classes),
            lr_scale=self.confusion_lr,
        ).to(device)
