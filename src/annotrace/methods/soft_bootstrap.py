"""Soft bootstrapping (Reed et al., ICLR workshop 2015).

The target of an item is beta times its majority vote plus 1 - beta times the network's own
prediction, so that a confident network may disagree with a label::

    -sum_k (beta t_k + (1 - beta) p_k) log p_k

Annotators are not modelled. Use it as a baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from annotrace.methods.targets import TargetEstimator, majority_targets
from annotrace.parameters import Fraction
from annotrace.training import Batch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class SoftBootstrap(TargetEstimator):
    """A classifier on majority votes that trusts itself a little.

    Parameters
    ----------
    beta : float
        Weight of the majority vote; the rest is the network's own prediction.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    beta: Fraction = 0.95

    method: ClassVar[str] = "soft-bootstrap"

    def _make_targets(self, settings: Settings) -> Tensor:
        return majority_targets(self.table_, settings.seed)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        log_p = F.log_softmax(logits.float(), dim=1)
        mixed = self.beta * self._targets[batch.item] + (1 - self.beta) * log_p.exp()
        return -(mixed * log_p).sum(1).mean()
