"""Networks on folds: each learns from the items outside its fold and judges those inside."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.class_repair import minimum_gain
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.recipe import MIXUPS
from annotrace.methods.targets import cross_entropy
from annotrace.methods.warm_start import Previous
from annotrace.networks import Bags, Ensemble, build_backbone
from annotrace.parameters import AtLeastTwo, NotNegative
from annotrace.training import (
    Batch,
    CrowdData,
    Epoch,
    Settings,
    autocast,
    best_epoch,
    check_finite,
    draw_mixture,
)

MAX_EPOCHS = 60
PATIENCE = 5
FRESH_WEIGHT = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class FoldNetworks(CrowdEstimator):
    """A method whose classifier is the mean of networks, each trained on all folds but one.

    Parameters
    ----------
    n_folds : int
    mixup : float or "auto"
        Learn from mixtures of two items, weighted by Beta(mixup, mixup); 0 for none. "auto" trains
        first with 1 and then with 0, and takes 0 if that explains held-out labels significantly
        better: mixtures of few features lie where other classes are.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    fold_ : ndarray of shape (n_items,)
    epochs_ : int
        Per training after the first, as given or found.
    mixup_ : float
        As given or found.
    """

    n_folds: AtLeastTwo = 5
    mixup: NotNegative | Literal["auto"] = "auto"

    def _build_modules(self, device: torch.device) -> None:
        super()._build_modules(device)
        self._previous: Previous | None = None

    def _initialize_from(self, previous: Previous) -> None:
        if self._networks.size != self.n_folds:
            raise InputError(
                f"Expected `n_folds` to be {self._networks.size}, as in the last fit, but got "
                f"{self.n_folds}: fit with `warm_start=False`."
            )
        self._previous = previous

    @property
    def _networks(self) -> Ensemble:
        assert isinstance(self.network_, Ensemble)
        return self.network_

    def _network_for(self, sample: Tensor | Bags) -> Ensemble:
        return Ensemble(
            [build_backbone(self.backbone, sample, self._n_outputs()) for _ in range(self.n_folds)]
        )

    def _claimed_size(self) -> int:
        return self.n_folds * super()._claimed_size()

    def _assign_folds(self, seed: int) -> NDArray[np.int64]:
        """Assign items to folds at random, those of a previous fit to the same fold."""
        n_items = self.table_.n_items
        fold = np.empty(n_items, np.int64)
        fold[np.random.default_rng(seed).permutation(n_items)] = np.arange(n_items) % self.n_folds
        if self._previous is None:
            return fold
        before = self._previous.folds(self.table_)
        return np.where(before >= 0, before, fold)

    def _forget_half(self, data: CrowdData) -> None:
        """Average the networks with fresh ones, so that they forget their last targets."""
        fresh = self._build_network(data)
        assert isinstance(fresh, Ensemble)
        self._networks.shrink_towards(fresh, FRESH_WEIGHT)

    def _fit_networks(
        self, data: CrowdData, inner: HeldOutEM, settings: Settings, number: int
    ) -> list[Epoch]:
        """Train each network on the posterior of the items outside its fold.

        The first training, with mixup and without unless that is given, stops where the labels of
        held-out items are explained best, unless the epochs are given; the others are half as long.
        """
        if number == 0 and self._previous is None:
            return self._choose_mixup(data, inner, settings)
        if number == 0:
            earlier = getattr(self, "mixup_", MIXUPS[0]), getattr(self, "epochs_", 2)
            self.mixup_ = earlier[0] if self.mixup == "auto" else float(self.mixup)
            self.epochs_ = self.epochs or earlier[1]
        part = replace(settings, epochs=self.epochs_, seed=settings.seed + 7919 * number)
        return self._run_networks(data, inner, part)

    def _choose_mixup(self, data: CrowdData, inner: HeldOutEM, settings: Settings) -> list[Epoch]:
        """Train for the first time; if `mixup` is "auto", use none where significantly better."""
        self.mixup_ = MIXUPS[0] if self.mixup == "auto" else float(self.mixup)
        fresh = copy.deepcopy(self.network_)
        history = self._first_training(data, inner, settings)
        if self.mixup != "auto":
            return history
        loss = inner.score(self._oof_logits(data))
        kept = self.mixup_, self.epochs_, self.network_
        self.mixup_, self.network_ = MIXUPS[1], fresh
        without = self._first_training(data, inner, settings)
        gain = loss - inner.score(self._oof_logits(data))
        if gain > minimum_gain(self.table_.n_labels):
            return without
        self.mixup_, self.epochs_, self.network_ = kept
        return history

    def _first_training(self, data: CrowdData, inner: HeldOutEM, settings: Settings) -> list[Epoch]:
        if self.epochs is not None:
            self.epochs_ = self.epochs
            return self._run_networks(data, inner, replace(settings, epochs=2 * self.epochs))
        part = replace(settings, epochs=MAX_EPOCHS, patience=PATIENCE)
        history = self._run_networks(data, inner, part, lambda: inner.score(self._oof_logits(data)))
        best = best_epoch(history)
        assert best is not None
        self.epochs_ = max(2, (best.number + 1) // 2)
        return history

    def _run_networks(
        self,
        data: CrowdData,
        inner: HeldOutEM,
        settings: Settings,
        score: Callable[[], float] | None = None,
    ) -> list[Epoch]:
        objective = self._objective(data, inner.posterior.float().to(data.device))
        return self._run(self._networks, objective, data, self._labelled(), settings, score)

    def _objective(self, data: CrowdData, targets: Tensor) -> Callable[[Batch], Tensor]:
        fold = torch.from_numpy(self.fold_).to(data.device)
        network = torch.arange(self.n_folds, device=data.device)[:, None]
        mixup = self.mixup_

        def objective(batch: Batch) -> Tensor:
            held_out = fold[batch.item] == network
            rows, target = self._networks.stage(batch.inputs), targets[batch.item]
            if mixup:
                mixture = draw_mixture(mixup, fold[batch.item], data.random.generator)
                rows, target = mixture.mix(rows), mixture.mix(target)
                held_out |= held_out[:, mixture.partner]
            own, _ = data.processes.rows(len(batch.item))
            losses = cross_entropy(self._networks.each(rows[own]), target[own])
            return (losses * ~held_out[:, own]).sum() / losses.shape[1]

        return objective

    def _oof_logits(self, data: CrowdData) -> Tensor:
        """Return the logits of each item by the network that did not learn from it."""
        fold = torch.from_numpy(self.fold_).to(data.device)
        networks = self._networks.eval()

        def logits(item: Tensor) -> Tensor:
            with autocast(data.device, self.precision):
                each = self._over_views(
                    lambda rows: networks.each(networks.stage(rows)), data.inputs(item)
                )
            return each[fold[item], torch.arange(len(item), device=item.device)]

        return check_finite(data.map(logits).cpu().double())
