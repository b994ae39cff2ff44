"""A plain classifier: cross-entropy on the majority vote of an item, or on every label.

The yardstick of every other method. A network trained so learns the noise of its annotators with
the truth; weight decay and early stopping only put that off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.aggregation import MajorityVote
from annotrace.labels.vocabulary import look_up
from annotrace.methods.base import CrowdEstimator
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class Vanilla(CrowdEstimator):
    """A classifier that takes the labels for the truth.

    Parameters
    ----------
    targets : {"majority", "every"}
        What the network learns: the majority vote of each item, ties broken by `random_state`;
        or every label by itself.
    **others
        See `CrowdEstimator`.
    """

    targets: Literal["majority", "every"] = "majority"

    method: ClassVar[str] = "vanilla"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        vote = MajorityVote(random_state=settings.seed).fit(self.table_)
        winner = (
            torch.from_numpy(look_up(vote.predict(), self.table_.classes)).long().to(data.device)
        )

        def loss_of(batch: Batch) -> tuple[Tensor, int]:
            logits = self.network_(batch.inputs)
            if self.targets == "majority":
                target = winner[batch.item]
            else:
                logits, target = logits[batch.row], batch.label
            return F.cross_entropy(logits.float(), target, reduction="sum"), len(target)

        def objective(batch: Batch) -> Tensor:
            return loss_of(batch)[0] / len(batch.item)

        return self._train(self.network_, objective, loss_of, data, settings)

    def _columns(self) -> None:
        return None
