"""The search for the first networks on folds: what they learn, and how."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from annotrace.aggregation import Aggregation, make
from annotrace.crowd.em import posterior
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.problem import is_comparable
from annotrace.data import ItemSource
from annotrace.distributed import current
from annotrace.labels import LabelTable
from annotrace.labels.gold import gold_by_name
from annotrace.methods.class_repair import minimum_gain
from annotrace.methods.fold_candidates import FoldCandidates
from annotrace.methods.fold_networks import Round
from annotrace.methods.fold_trace import DIAGONAL, LR_SCALE, TraceLoss, held_out_losses
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.plain_guard import Plain, plain_candidates
from annotrace.methods.search import Candidate, Tried, choose, near_best
from annotrace.methods.targets import majority_targets
from annotrace.methods.trace_regularized import make_annotators
from annotrace.methods.warm_start import Previous
from annotrace.threads import GLOBAL_STATE
from annotrace.training import (
    CheckpointSeries,
    CrowdData,
    Epoch,
    Settings,
    show_trainings,
)

MIN_CONFIDENCE = 0.87
"""Mean confidence of labels alone below which they are not trusted. Those of simulated crowds that
lose more than .01 by trusting them have less than .85, such as ordered grades and few experts among
many (benchmarks/labels_or_features.py). Product records, which gain .02, have .91."""


class Start(NamedTuple):
    """What the iterations start from.

    Attributes
    ----------
    candidate : Candidate
        How networks learn from here.
    logits : Tensor of shape (n_items, n_classes)
        Out of fold.
    epochs : int
        That the first networks were trained for.
    history : list of Epoch
    alone : Tensor of shape (n_items, n_classes) or None
        The posterior by labels alone, if it is to be trusted more than features.
    plain : list of Plain
        What the last networks must not be worse than.
    """

    candidate: Candidate
    logits: Tensor
    epochs: int
    history: list[Epoch]
    alone: Tensor | None
    plain: list[Plain]


@dataclass(kw_only=True, eq=False, repr=False)
class FoldSearch(FoldCandidates):
    """Networks on folds that find out what to learn first, and how.

    Parameters
    ----------
    **others
        See `FoldCandidates`, `DistilledFolds`, `FoldNetworks` and `CrowdEstimator`.

    Attributes
    ----------
    search_ : list of dict
        The ways to learn that were tried, with their criteria; see `annotrace.methods.search`.
    """

    def _find_start(self, data: CrowdData, inner: HeldOutEM, settings: Settings) -> Start:
        """Train candidates, and choose by out-of-fold predictions."""
        alone = self._by_labels(settings.seed)
        self._trusted = self.init == "labels" or (self.init == "auto" and self._may_trust(alone))
        targets = inner.problem.votes() if alone is None else torch.from_numpy(alone.posterior_)
        self._expect_trainings(self._max_candidates() + self._n_iterations())
        first = self._first_scaling(data, inner, settings.seed)
        tried: list[tuple[Tried, Round]] = []
        for candidate, most in self._candidates(tried, inner, targets, first):
            part = replace(settings, epochs=min(most, settings.epochs))
            # Each draws its own random numbers, so that it does not depend on the others.
            with data.random.reseeded(settings.seed):
                found = self._first_round(data, inner, candidate, targets, part)
            tried[:] = [one for one in tried if one[0].candidate != candidate]
            tried.append((self._judge(inner, candidate, found), found))
            if not self._trusted:
                tried.sort(key=lambda one: one[0].candidate.learner == "labels")
        each = [each for each, _ in tried]
        best, self.search_ = choose(each, self.table_)
        candidate, found = each[best].candidate, tried[best][1]
        own = [one for one in each if one.candidate.backbone == "own"]
        onwards = own[choose(own, self.table_)[0]]
        if self._trusted:
            start = onwards.candidate, found.logits, onwards.epochs, found.history
            return Start(*start, targets, [])
        rounds = [tried[number][1] for number in near_best(each, best, self.table_)]
        logits = torch.stack([each.logits.log_softmax(1) for each in rounds]).mean(0)
        with data.random.reseeded(settings.seed):
            again = self._from_best_network(data, inner, candidate, found, logits, settings)
        logits = logits if again is None else again.logits
        plain = plain_candidates(tried)
        return Start(onwards.candidate, logits, onwards.epochs, found.history, None, plain)

    # Progress

    def fit_matched(
        self,
        source: ItemSource,
        table: LabelTable,
        gold: NDArray[np.int32],
        checkpoints: CheckpointSeries,
        previous: Previous | None = None,
    ) -> None:
        """Fit as `CrowdEstimator` does, with one display of all trainings."""
        with show_trainings(self.verbose and current().is_first):
            super().fit_matched(source, table, gold, checkpoints, previous)

    # Labels alone

    def _by_labels(self, seed: int) -> Aggregation | None:
        """Return the default aggregation of the labels; as a start, it need not converge."""
        if self.init in ("votes", "trace") or not is_comparable(self.table_, self.gold_):
            return None
        known = gold_by_name(self.table_, self.gold_)
        with GLOBAL_STATE, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return make(random_state=seed).fit(self.table_, gold=known)

    def _may_trust(self, alone: Aggregation | None) -> bool:
        return alone is not None and bool(alone.confidence_.mean() >= MIN_CONFIDENCE)

    # Training and judging

    def _first_round(
        self,
        data: CrowdData,
        inner: HeldOutEM,
        candidate: Candidate,
        targets: Tensor,
        settings: Settings,
    ) -> Round:
        if self.epochs is not None:
            settings = replace(settings, epochs=2 * self.epochs)
        score = None if self.epochs is not None else inner.evaluate
        if candidate.learner == "votes":
            targets = majority_targets(self.table_, settings.seed)
        if candidate.learner != "trace":
            if score is not None and self._trusted:
                inner.set_posterior(targets)
                inner.count_matrices(inner.posterior)
                score = inner.score
            loss = self._posterior_loss(
                data, inner.problem.set_gold(targets.to(inner.problem.dtype))
            )
            return self._train_networks(data, candidate, settings, loss, score)
        with data.random.initial_weights():
            annotators = make_annotators(
                self.table_,
                len(self._labelled()),
                settings.batch_size,
                n_folds=self._n_folds,
                structure="pooled",
                diagonal=max(DIAGONAL, 1 / self.table_.n_classes),
                lr_scale=LR_SCALE,
            ).to(data.device)
        gold = torch.from_numpy(self.gold_).long().to(data.device)
        known = gold if bool((gold >= 0).any()) else None
        loss = TraceLoss(self.table_, self._folds(data), annotators, known)
        return self._train_networks(data, candidate, settings, loss, score, annotators)

    def _judge(self, inner: HeldOutEM, candidate: Candidate, found: Round) -> Tried:
        inner.restart(found.logits)
        proba = torch.softmax(found.logits, 1).double().numpy()
        combined = inner.posterior.double().numpy().copy()
        return Tried(candidate, found.epochs, inner.label_loss, proba, combined)

    def _from_best_network(
        self,
        data: CrowdData,
        inner: HeldOutEM,
        candidate: Candidate,
        found: Round,
        logits: Tensor,
        settings: Settings,
    ) -> Round | None:
        """Train again from the network with the most likely matrices, if others missed them."""
        if found.annotators is None or self.effort == "fast" or not self._has_time():
            return None
        sizes = self._n_folds, self.table_.n_annotators, self.table_.n_classes, -1
        matrices = found.annotators.matrices().cpu().view(*sizes)
        losses = held_out_losses(self.table_, self.fold_, found.logits, matrices)
        if losses.mean() - losses.min() <= minimum_gain(self.table_.n_labels / self._n_folds):
            return None
        best = int(np.argmin(losses))
        own = data.map(lambda item: self._logits_of(found, best, data, item)).cpu().double()
        labels = LabelIndex.from_table(self.table_)
        likelihood = labels.sum_matrices(matrices[best].to(labels.dtype).clamp_min(1e-12).log())
        targets = posterior(torch.log_softmax(own, 1), likelihood.double())
        again = self._first_round(
            data, inner, replace(candidate, learner="labels"), targets, settings
        )
        gain = inner.evaluate(logits) - inner.evaluate(again.logits)
        return again if gain > minimum_gain(self.table_.n_labels) else None

    def _logits_of(self, found: Round, place: int, data: CrowdData, item: Tensor) -> Tensor:
        rows = found.networks.stage(data.inputs(item))
        return found.networks.by_place(rows)[place].float()
