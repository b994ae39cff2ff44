"""First the truth from labels alone, then a classifier on it.

Any aggregation gives each item a class or a distribution over classes; a network learns these.
Features do not influence the truth, which the joint methods change; but with several labels per
item it is hard to beat, especially with mixup (Zhang et al., ICLR 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.aggregation import Aggregation, make
from annotrace.aggregation.run_reader import SavedRun
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.result import CrowdResult
from annotrace.labels.gold import gold_by_name
from annotrace.methods.recipe import Trial
from annotrace.methods.targets import TargetEstimator
from annotrace.parameters import Natural, NotNegative
from annotrace.training import CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStage(TargetEstimator):
    """A classifier on aggregated labels.

    Parameters
    ----------
    aggregate : str
        The short name of an aggregation; see `annotrace.aggregation.list_aggregations`.
    hard : bool
        Learn the most probable class of each item rather than the probabilities of all.
    mixup : float
        Mix pairs of rows and their targets, weighted by Beta(mixup, mixup); 0 mixes none.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.

    Attributes
    ----------
    aggregation_ : Aggregation
        The fitted aggregation; `confusion_` and `posterior_` are its own.
    """

    aggregate: str = "pooled"
    hard: bool = False
    mixup: NotNegative = 0.0

    method: ClassVar[str] = "two-stage"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **TargetEstimator.saved_attributes,
        "aggregation_seed_": Natural,
    }

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the cross-entropy of the aggregated labels."""
        trial = trial._replace(mixup=max(trial.mixup, self.mixup))
        return super().train_once(data, settings, trial)

    def _make_targets(self, settings: Settings) -> Tensor:
        self.aggregation_seed_ = settings.seed
        self._aggregate()
        posterior = torch.from_numpy(self.aggregation_.posterior_)
        if not self.hard:
            return posterior
        return F.one_hot(posterior.argmax(1), self.table_.n_classes)

    def _aggregate(self) -> None:
        fresh = make(self.aggregate, random_state=self.aggregation_seed_)
        gold = gold_by_name(self.table_, self.gold_)
        self.aggregation_: Aggregation = fresh.fit(self.table_, gold=gold)

    def _make_result(self, data: CrowdData) -> CrowdResult:
        # The classifier does not contribute to the posterior, but may have diverged.
        self.logits(data)
        self.annotator_model_ = self.aggregation_.annotator_model_
        return self.aggregation_.result_

    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run; the aggregation follows from the labels."""
        run.check_shapes(make(self.aggregate).largest_shapes(CrowdProblem(run.table)))
        self.table_, self.gold_ = run.table, run.gold
        self.aggregation_seed_ = run.attributes(self.saved_attributes)["aggregation_seed_"]
        self._aggregate()
        super().restore(run)

    def _build_modules(self, device: torch.device) -> None:
        fitted = getattr(self, "aggregation_", None)
        self.annotator_model_ = None if fitted is None else fitted.annotator_model_
