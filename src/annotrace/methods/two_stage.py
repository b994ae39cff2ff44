"""First the truth from labels alone, then a classifier on it.

Any aggregation gives each item a class or a distribution over classes; a network learns these.
Features have no say in the truth, which is what the joint methods mend; but with several labels an
item it is hard to beat, the more so with mixup (Zhang et al., ICLR 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from annotrace import aggregation
from annotrace.labels.gold import gold_by_name
from annotrace.methods.targets import TargetEstimator
from annotrace.parameters import NotNegative
from annotrace.training import Batch, CrowdData, Settings, draw_mixture, mixed_logits


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStage(TargetEstimator):
    """A classifier on aggregated labels.

    Parameters
    ----------
    aggregate : str
        The short name of an aggregation; see `annotrace.aggregation.list_aggregations`. Where no
        item has two labels, each gives the labels back as they are.
    hard : bool
        Learn the likeliest class of each item rather than the probabilities of all.
    mixup : float
        Mix pairs of rows and their targets, by weights from Beta(mixup, mixup); 0 mixes none.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    aggregation_ : Aggregation
        As fitted, after `load` anew; `confusion_` and `posterior_` are its own.
    """

    aggregate: str = "pooled"
    hard: bool = False
    mixup: NotNegative = 0.0

    method: ClassVar[str] = "two-stage"

    @cached_property
    def aggregation_(self) -> aggregation.Aggregation:
        """The aggregation, which a run does not hold: it follows from the labels."""
        return self._aggregated(self.aggregation_seed_)

    def _aggregated(self, seed: int) -> aggregation.Aggregation:
        made = aggregation.make(self.aggregate, random_state=seed)
        return made.fit(self.table_, gold=gold_by_name(self.table_, self.gold_))

    def _targets(self, settings: Settings) -> Tensor:
        self.aggregation_seed_ = settings.seed
        self.aggregation_ = self._aggregated(settings.seed)
        self.confusion_ = self.aggregation_.confusion_
        posterior = torch.from_numpy(self.aggregation_.posterior_)
        if not self.hard:
            return posterior
        return F.one_hot(posterior.argmax(1), self.table_.n_classes)

    def _batch_loss(self, batch: Batch, targets: Tensor) -> Tensor:
        if not self.mixup:
            return super()._batch_loss(batch, targets)
        mixture = draw_mixture(self.mixup, torch.zeros_like(batch.item))
        logits = mixed_logits(self.network_, batch.inputs, mixture)
        return self._row_loss(logits, mixture.mix(targets[batch.item])).mean()

    def _without_labels(self) -> NDArray[Any] | None:
        # The posterior is the aggregation's: no classifier has had a part in it.
        common: NDArray[Any] = self.posterior_.mean(axis=0)
        return common

    def _estimate(self) -> NDArray[np.integer[Any]]:
        return self.aggregation_._estimate()

    def _compares(self) -> bool:
        return self.aggregation_._compares()

    def _by_vote(self) -> bool:
        return self.aggregation_._by_vote()

    def _read_out(self, data: CrowdData) -> None:
        self.posterior_ = self.aggregation_.posterior_
