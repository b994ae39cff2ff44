"""Networks that learn one target per item: what several methods share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.aggregation import MajorityVote
from annotrace.crowd.em import clamp_posterior
from annotrace.crowd.losses import cross_entropy
from annotrace.labels import LabelTable
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class TargetEstimator(NetworkEstimator):
    """A classifier trained on one target, hard or soft, per item."""

    @abstractmethod
    def _make_targets(self, settings: Settings) -> Tensor:
        """Return the target of each item, shape (n_items, n_classes)."""

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the cross-entropy of the targets."""
        targets = clamp_posterior(self._make_targets(settings).numpy(), self.gold_)
        self._targets = torch.from_numpy(targets).float().to(data.device)
        return self._train(self.network_, self._objective(data, trial.mixup), data, settings)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        return cross_entropy(logits, self._targets[batch.item]).mean()

    def _score(self, batch: Batch, logits: Tensor) -> tuple[Tensor, int]:
        return cross_entropy(logits, self._targets[batch.item]).sum(), len(batch.item)


def majority_targets(table: LabelTable, seed: int) -> Tensor:
    """Return the majority vote of each item as a row of 0 and 1, ties broken by seed."""
    winner = MajorityVote(random_state=seed).fit(table).result_.estimate
    return F.one_hot(torch.from_numpy(winner).long(), table.n_classes).float()
