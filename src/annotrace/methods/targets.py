"""Networks that learn a target for each item: what several methods share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation import MajorityVote
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up
from annotrace.methods.base import CrowdEstimator
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class TargetEstimator(CrowdEstimator):
    """A classifier trained on one target, hard or soft, for each item."""

    @abstractmethod
    def _targets(self, settings: Settings) -> Tensor:
        """Give the target of each item, shape (n_items, n_classes)."""

    def _row_loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Give the loss of each row, shape (n_rows,)."""
        return cross_entropy(logits, targets)

    def _batch_loss(self, batch: Batch, targets: Tensor) -> Tensor:
        """Give the loss to minimise on a batch, a scalar."""
        return self._row_loss(self.network_(batch.inputs), targets[batch.item]).mean()

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        targets = settle(self._targets(settings), self.gold_).float().to(data.device)

        def objective(batch: Batch) -> Tensor:
            return self._batch_loss(batch, targets)

        def score(batch: Batch) -> tuple[Tensor, int]:
            logits = self.network_(batch.inputs)
            return cross_entropy(logits, targets[batch.item]).sum(), len(batch.item)

        return self._train(self.network_, objective, score, data, settings)

    def _columns(self) -> None:
        return None


def settle(targets: Tensor, gold: NDArray[np.int32]) -> Tensor:
    """Give targets (n_items, n_classes) that are certain where the class is known."""
    known = torch.from_numpy(gold).long()
    certain = F.one_hot(known.clamp_min(0), targets.shape[1]).to(targets)
    return torch.where(known[:, None] >= 0, certain, targets)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Give the cross-entropy of soft targets row by row, shape (..., n_rows).

    Parameters
    ----------
    logits : Tensor of shape (..., n_rows, n_classes)
    targets : Tensor of shape (n_rows, n_classes)
    """
    return -(targets * F.log_softmax(logits.float(), dim=-1)).sum(-1)


def majority_targets(table: LabelTable, seed: int) -> Tensor:
    """Give the majority vote of each item as a row of 0 and 1, ties broken by seed."""
    winner = look_up(MajorityVote(random_state=seed).fit(table).predict(), table.classes)
    return F.one_hot(torch.from_numpy(winner).long(), table.n_classes).float()
