"""Networks on folds that may be distilled into one network."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from annotrace.crowd.em import clamp_posterior
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.temperature import match_temperature
from annotrace.methods.distillation import distillation_loss
from annotrace.methods.fold_networks import FoldNetworks
from annotrace.methods.search import Candidate
from annotrace.methods.warm_start import Previous
from annotrace.networks import Bags, Ensemble
from annotrace.training import CrowdData, Epoch, Settings, join_histories


@dataclass(kw_only=True, eq=False, repr=False)
class DistilledFolds(FoldNetworks):
    """A method whose classifier is the mean of networks on folds, or one network in their place.

    Parameters
    ----------
    distill : bool
        Train one network on the posterior of all items at last, which then is the classifier: it
        is as small and as fast as one of the networks on folds.
    **others
        See `FoldNetworks`.

    Attributes
    ----------
    epochs_ : int
        Of the network that is distilled, too.
    temperature_ : float
        What logits are divided by.
    """

    distill: bool = False

    @abstractmethod
    def _learn_on_folds(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Train networks on folds; set the posterior and whatever else the method learns."""

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        history = self._learn_on_folds(data, settings)
        return join_histories(history, self._distill(data, settings)) if self.distill else history

    def _distill(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Train one network on the posterior of all items, in place of the networks on folds.

        They were calibrated out of fold, but no item is held out from this one: it is calibrated to
        them.
        """
        teacher, candidate = self._log_proba(data).exp(), Candidate(**self.chosen_)
        posterior = torch.from_numpy(clamp_posterior(self._posterior, self.gold_))
        build = partial(self._one_network, candidate=candidate)
        self.network_, self.temperature_ = self._new_network(data, build), 1.0
        loss = distillation_loss(self.network_, posterior, candidate.mixup, data)
        weight_decay = max(settings.weight_decay, candidate.weight_decay)
        part = replace(settings, epochs=self.epochs_, weight_decay=weight_decay)
        history = self._run(self.network_, loss, data, self._labelled(), part)
        problem = CrowdProblem(self.table_, self.gold_)
        logits = self.logits(data).cpu().double()
        self.temperature_ = match_temperature(problem, logits, teacher)
        return history

    def logits(self, data: CrowdData) -> Tensor:
        """Return the calibrated logits of all items, shape (n_items, n_classes)."""
        logits = super().logits(data)
        # Networks on folds divide theirs themselves, before they are averaged.
        return logits if isinstance(self.network_, Ensemble) else logits / self.temperature_

    # Restoring and continuing

    def _network_for(self, sample: Tensor | Bags) -> nn.Module:
        if self.distill:
            return self._one_network(sample, Candidate(**self.chosen_))
        return super()._network_for(sample)

    def _claimed_size(self) -> int:
        size = super()._claimed_size()
        return size // (self._n_folds * self.n_rounds_) if self.distill else size

    def _n_folds_before(self, previous: Previous) -> int:
        if isinstance(self.network_, Ensemble):
            return super()._n_folds_before(previous)
        assert previous.fold is not None
        # With few items the last folds may be empty.
        return max(int(previous.fold.max()) + 1, self._n_folds)

    def _logits_before(self, data: CrowdData, previous: Previous) -> Tensor:
        if isinstance(self.network_, Ensemble):
            return super()._logits_before(data, previous)
        # This network has learned from all items of that fit.
        return previous.out_of_fold(self.table_, self._log_proba(data))
