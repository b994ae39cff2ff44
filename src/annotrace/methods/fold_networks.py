"""Networks on folds: each learns from the items outside its fold and judges those inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.losses import cross_entropy
from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.search import Candidate
from annotrace.methods.warm_start import Previous
from annotrace.networks import Bags, Ensemble, build_backbone
from annotrace.networks.backbones import WIDTH
from annotrace.parameters import AtLeastTwo
from annotrace.training import (
    Batch,
    CrowdData,
    Epoch,
    Mixture,
    Settings,
    autocast,
    best_epoch,
    check_finite,
    draw_mixture,
)

MAX_EPOCHS = 60
PATIENCE = 6
TOGETHER, APART = 5, 3
"""Folds of networks that train together, and of those that train one after the other."""


class FoldLoss(Protocol):
    """A loss of a batch and the logits of all networks, (n_folds, n_rows, n_classes)."""

    def __call__(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return the loss of the rows of a batch."""

    def mixed(self, batch: Batch, logits: Tensor, mixture: Mixture) -> Tensor:
        """Return the loss of mixtures of two rows: the mean of both losses, by their weights.

        The labels of an item reach the networks outside its fold alone, also if its partner is in
        another fold.
        """


class PosteriorLoss:
    """The cross-entropy of a posterior, for each network of the items outside its fold.

    Parameters
    ----------
    targets : Tensor of shape (n_items, n_classes)
    fold : LongTensor of shape (n_items,)
    n_folds : int
    """

    def __init__(self, targets: Tensor, fold: Tensor, n_folds: int) -> None:
        self._targets, self._fold = targets, fold
        self._networks = torch.arange(n_folds, device=fold.device)[:, None]

    def __call__(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return the loss of the rows of a batch."""
        return self._loss(self._seen(batch), logits)

    def mixed(self, batch: Batch, logits: Tensor, mixture: Mixture) -> Tensor:
        """Return the loss of mixtures of two rows, which is linear in the targets."""
        seen = self._seen(batch)
        return self._loss(torch.lerp(seen[:, mixture.partner], seen, mixture.weight), logits)

    def _seen(self, batch: Batch) -> Tensor:
        """Return the targets of each network, 0 in its own fold, (n_folds, n_rows, n_classes)."""
        is_seen = self._fold[batch.item] != self._networks
        return self._targets[batch.item] * is_seen[..., None]

    def _loss(self, seen: Tensor, logits: Tensor) -> Tensor:
        return cross_entropy(logits, seen).sum() / logits.shape[1]


class Round(NamedTuple):
    """One training of the networks of all folds.

    Attributes
    ----------
    networks : Ensemble
        Network k has not learned from the items of fold k.
    logits : Tensor of shape (n_items, n_classes)
        Out of fold.
    epochs : int
        That the networks were trained for.
    history : list of Epoch
    annotators : AnnotatorModel or None
        What was trained along with the networks.
    """

    networks: Ensemble
    logits: Tensor
    epochs: int
    history: list[Epoch]
    annotators: AnnotatorModel | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class FoldNetworks(CrowdEstimator):
    """A method whose classifier is the mean of networks, each trained on all folds but one.

    Parameters
    ----------
    n_folds : int, optional
        By default 5 for perceptrons, which train together, and 3 for other networks.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    fold_ : ndarray of shape (n_items,)
    chosen_ : dict
        How the networks learn: see `annotrace.methods.search.Candidate`.
    n_rounds_ : int
        Rounds of training whose networks are averaged.
    """

    n_folds: AtLeastTwo | None = None

    @property
    def _n_folds(self) -> int:
        if self.n_folds is not None:
            return self.n_folds
        return TOGETHER if self._are_perceptrons() else APART

    def _are_perceptrons(self) -> bool:
        is_image = self.input_kind_ == "array" and len(self.input_shape_) > 1
        return self.backbone in ("mlp", "linear") or (self.backbone == "auto" and not is_image)

    def _build_modules(self, device: torch.device) -> None:
        super()._build_modules(device)
        self._previous: Previous | None = None

    def _initialize_from(self, previous: Previous) -> None:
        n_folds = self._n_folds_before(previous)
        if n_folds != self._n_folds:
            raise InputError(
                f"Expected `n_folds` to be {n_folds}, as in the last fit, but got "
                f"{self._n_folds}: fit with `warm_start=False`."
            )
        self._previous = previous

    def _n_folds_before(self, previous: Previous) -> int:
        return self._networks.size // int(self.n_rounds_)

    def _logits_before(self, data: CrowdData, previous: Previous) -> Tensor:
        """Return out-of-fold logits by what the previous fit has learned, (n_items, n_classes)."""
        return self._oof_logits(data, self._networks)

    @property
    def _networks(self) -> Ensemble:
        assert isinstance(self.network_, Ensemble)
        return self.network_

    def _build_network(self, data: CrowdData) -> nn.Module:
        return self._new_networks(data, Candidate())

    def _new_networks(self, data: CrowdData, candidate: Candidate) -> Ensemble:
        build = partial(self._ensemble, candidate=candidate, n_rounds=1)
        networks = self._new_network(data, build)
        assert isinstance(networks, Ensemble)
        return networks

    def _network_for(self, sample: Tensor | Bags) -> nn.Module:
        return self._ensemble(sample, Candidate(**self.chosen_), self.n_rounds_)

    def _ensemble(self, sample: Tensor | Bags, candidate: Candidate, n_rounds: int) -> Ensemble:
        n_networks = n_rounds * self._n_folds
        return Ensemble([self._one_network(sample, candidate) for _ in range(n_networks)], n_rounds)

    def _one_network(self, sample: Tensor | Bags, candidate: Candidate) -> nn.Module:
        backbone = self.backbone if candidate.backbone == "own" else candidate.backbone
        return build_backbone(
            backbone,
            sample,
            self._n_outputs(),
            scaling=candidate.scaling,
            width=candidate.width,
            batch_norm=candidate.batch_norm,
        )

    def _claimed_size(self) -> int:
        width: int = max(self.chosen_["width"], WIDTH) // WIDTH
        size: int = self._n_folds * self.n_rounds_ * width * super()._claimed_size()
        return size

    def _assign_folds(self, seed: int) -> NDArray[np.int64]:
        """Assign items to folds at random, those of a previous fit to the same fold."""
        n_items = self.table_.n_items
        fold = np.empty(n_items, np.int64)
        fold[np.random.default_rng(seed).permutation(n_items)] = np.arange(n_items) % self._n_folds
        if self._previous is None:
            return fold
        before = self._previous.folds(self.table_)
        return np.where(before >= 0, before, fold)

    # Training

    def _train_networks(
        self,
        data: CrowdData,
        candidate: Candidate,
        settings: Settings,
        loss: FoldLoss,
        score: Callable[[Tensor], float] | None,
        annotators: AnnotatorModel | None = None,
    ) -> Round:
        """Train new networks; with a score of out-of-fold logits, keep the best epoch.

        `annotators` is trained along with the networks.
        """
        networks = self._new_networks(data, candidate)
        learned = nn.ModuleList([networks] if annotators is None else [networks, annotators])
        part = replace(settings, weight_decay=max(settings.weight_decay, candidate.weight_decay))
        score_now = None
        if score is not None:
            part = replace(part, epochs=min(MAX_EPOCHS, settings.epochs), patience=PATIENCE)
            score_now = partial(self._score_networks, score, data, networks)
        objective = _mixed(networks, loss, candidate.mixup, data)
        augment = data.augment
        data.augment = augment if candidate.backbone == "own" else None
        history = self._run(learned, objective, data, self._labelled(), part, score_now)
        data.augment = augment
        best = best_epoch(history)
        epochs = part.epochs if best is None else best.number
        return Round(networks, self._oof_logits(data, networks), epochs, history, annotators)

    def _score_networks(
        self, score: Callable[[Tensor], float], data: CrowdData, networks: Ensemble
    ) -> float:
        return score(self._oof_logits(data, networks))

    def _posterior_loss(self, data: CrowdData, posterior: Tensor) -> FoldLoss:
        """Return the cross-entropy of a posterior, (n_items, n_classes), outside each fold."""
        targets = posterior.float().to(data.device)
        return PosteriorLoss(targets, self._folds(data), self._n_folds)

    def _folds(self, data: CrowdData) -> Tensor:
        return torch.from_numpy(self.fold_).to(data.device)

    def _oof_logits(self, data: CrowdData, networks: Ensemble) -> Tensor:
        """Return the logits of each item by the networks that did not learn from it."""
        fold, networks = self._folds(data), networks.eval()

        def logits(item: Tensor) -> Tensor:
            with autocast(data.device, self.precision):
                each = self._over_views(
                    lambda rows: networks.by_place(networks.stage(rows)), data.inputs(item)
                )
            return each[fold[item], torch.arange(len(item), device=item.device)]

        return check_finite(data.map(logits).cpu().double())


def _mixed(
    networks: Ensemble, loss: FoldLoss, mixup: float, data: CrowdData
) -> Callable[[Batch], Tensor]:
    """Return the training loss of a batch, of mixtures of two items if `mixup` is not 0."""

    def plain_loss(batch: Batch) -> Tensor:
        return loss(batch, networks.each(networks.stage(batch.inputs)))

    def mixed_loss(batch: Batch) -> Tensor:
        mixture = draw_mixture(mixup, torch.zeros_like(batch.item), data.random.generator)
        logits = networks.each(mixture.mix(networks.stage(batch.inputs)))
        return loss.mixed(batch, logits, mixture)

    return mixed_loss if mixup else plain_loss
