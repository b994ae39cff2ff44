"""The search for the first networks on folds: what they learn, and how."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

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
from annotrace.data.augmentation import KINDS
from annotrace.distributed import current
from annotrace.labels import LabelTable
from annotrace.labels.gold import gold_by_name
from annotrace.methods.class_repair import minimum_gain
from annotrace.methods.distilled_folds import DistilledFolds
from annotrace.methods.fold_networks import MAX_EPOCHS, Round
from annotrace.methods.fold_trace import (
    DIAGONAL,
    LR_SCALE,
    TraceLoss,
    fits,
    losses_by_network,
)
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.neighbours import neighbour_loss
from annotrace.methods.plain_guard import Plain, plain_candidates
from annotrace.methods.search import Candidate, Tried, choose, near_best, neighbours
from annotrace.methods.targets import majority_targets
from annotrace.methods.trace_regularized import make_annotators
from annotrace.methods.warm_start import Previous
from annotrace.networks.inputs import Scaling, fit_standardize
from annotrace.parameters import NotNegative, Positive
from annotrace.threads import GLOBAL_STATE
from annotrace.training import (
    CheckpointSeries,
    CrowdData,
    Epoch,
    Settings,
    expect_trainings,
    show_trainings,
)

MIN_CONFIDENCE = 0.87
"""Mean confidence of labels alone below which they are not trusted. Those of simulated crowds that
lose more than .01 by trusting them have less than .85, such as ordered grades and few experts among
many (benchmarks/labels_or_features.py). Product records, which gain .02, have .91."""

PILOT = 10
"""Epochs after which the scaling of features is chosen; the better one then has all epochs."""

UNMIXED = 20
"""Epochs of the best candidate up to which the same without mixup is tried. On none of 28 crowds
was it the best. Averaged with the best it is worth .001, which long trainings are not."""

MAX_NEIGHBOURS = 1500
"""Items among which nearest neighbours are looked for."""

FAST_BATCH, FAST_LR = 128, 2e-3
"""Of `effort="fast"`, where an epoch still has `FAST_STEPS` steps."""

FAST_STEPS = 5

MAX_PIXELS = 4096
"""Values of an image up to which a perceptron on pixels is tried."""

Effort: TypeAlias = Literal["fast", "default", "thorough"]


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
class FoldSearch(DistilledFolds):
    """Networks on folds that find out what to learn first, and how.

    Parameters
    ----------
    effort : {"fast", "default", "thorough"} or float
        How much is tried: one way to learn and one iteration; a few ways and two iterations; or
        other widths, weight decays and mixtures too, and four iterations. A number is the seconds
        after which the default starts no further training that it can do without; the result then
        depends on the speed of the machine.
    mixup : float or "auto"
        Learn from mixtures of two items, weighted by Beta(mixup, mixup); 0 for none. "auto" tries 1
        and 0: mixtures of few features lie where other classes are.
    init : {"auto", "labels", "trace", "votes"}
        What the networks learn first: the default aggregation of labels alone, the
        trace-regularised model, or the shares of votes. "auto" tries the first two.
    **others
        See `DistilledFolds`, `FoldNetworks` and `CrowdEstimator`.

    Attributes
    ----------
    search_ : list of dict
        The ways to learn that were tried, with their criteria; see `annotrace.methods.search`.
    """

    effort: Effort | Positive = "default"
    mixup: NotNegative | Literal["auto"] = "auto"
    init: Literal["auto", "labels", "trace", "votes"] = "auto"

    @abstractmethod
    def _n_iterations(self) -> int:
        """Return how many iterations follow the search at most."""

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

    # What is tried

    def _candidates(
        self,
        tried: Sequence[tuple[Tried, Round]],
        inner: HeldOutEM,
        alone: Tensor,
        scaling: Scaling,
    ) -> Iterator[tuple[Candidate, int]]:
        """Yield candidates and their epochs at most, each given those tried so far."""

        def best() -> int:
            return choose([each for each, _ in tried], self.table_)[0]

        def better(**changes: Any) -> Candidate:
            return replace(tried[best()][0].candidate, **changes)

        def in_full(**changes: Any) -> tuple[Candidate, int]:
            return better(**changes), MAX_EPOCHS

        mixup = 1.0 if self.mixup == "auto" else float(self.mixup)
        if self._trusted:
            yield Candidate("labels", mixup, scaling), MAX_EPOCHS
            if self._tries_scalings():
                yield in_full(scaling="common")
            inner.set_posterior(alone)
            inner.count_matrices(inner.posterior)
            if self.init == "labels" or inner.labels_outweigh(tried[best()][1].logits):
                return
            self._trusted = False
            if "trace" in self._learners():
                yield Candidate("trace", mixup, better().scaling), MAX_EPOCHS
        else:
            first = Candidate(self._learners()[0], mixup, scaling)
            has_pilots = self._has_pilots() and self._has_time()
            yield first, PILOT if has_pilots else MAX_EPOCHS
            if self._tries_scalings() and self._has_time():
                yield replace(first, scaling="common"), PILOT if has_pilots else MAX_EPOCHS
            if has_pilots and len(tried[best()][1].history) == PILOT:
                yield in_full()
        if self._is_small_image():
            yield in_full(backbone="mlp")
            if self.mixup == "auto":
                yield in_full(backbone="mlp", mixup=0.0)
        if self.effort == "fast" or (self._is_slow() and self.effort != "thorough"):
            return
        if self.mixup == "auto" and self._has_time():
            is_short = tried[best()][0].epochs <= UNMIXED or self.effort == "thorough"
            yield better(mixup=0.0), MAX_EPOCHS if is_short else UNMIXED
        has_labels = any(each.candidate.learner == "labels" for each, _ in tried)
        if "labels" in self._learners() and not has_labels and self._has_time():
            yield in_full(learner="labels")
        if self.effort == "thorough":
            yield Candidate("votes", 0.0 if self.mixup == "auto" else mixup), MAX_EPOCHS
            for candidate in neighbours(better(), has_hidden=self._has_hidden()):
                yield candidate, MAX_EPOCHS

    def _learners(self) -> tuple[Literal["trace", "labels"], ...]:
        if self.init in ("labels", "votes") or not fits(self.table_, self._n_folds):
            return ("labels",)
        return ("trace",) if self.init == "trace" else ("trace", "labels")

    def _scales_features(self) -> bool:
        """Whether the networks are perceptrons on rows of features, of whatever units."""
        is_rows = self.input_kind_ == "array" and len(self.input_shape_) == 1
        return is_rows and self.backbone in ("auto", "mlp", "linear")

    def _tries_scalings(self) -> bool:
        """Whether networks are trained on features of both scalings."""
        return self._scales_features() and self.effort != "fast"

    def _has_pilots(self) -> bool:
        """Whether both scalings of features are tried for a few epochs first."""
        return self._tries_scalings() and self.epochs is None

    def _first_scaling(self, data: CrowdData, inner: HeldOutEM, seed: int) -> Scaling:
        """Return the scaling to try first: by nearest neighbours, if it is to be the only one."""
        if self._tries_scalings() or not self._scales_features():
            return "feature"
        drawn = np.random.default_rng(seed).permutation(self._labelled())[:MAX_NEIGHBOURS]
        item = torch.from_numpy(drawn)
        rows, votes = data.inputs(item.to(data.device)).cpu(), inner.problem.votes()[item]
        assert isinstance(rows, Tensor)

        def loss(scaling: Scaling) -> float:
            return neighbour_loss(fit_standardize(rows, scaling)(rows), votes)

        return "common" if loss("common") < loss("feature") else "feature"

    def _has_hidden(self) -> bool:
        """Whether the networks have a hidden layer that candidates may change."""
        # Batch normalisation needs two rows to learn from.
        return self._scales_features() and self.backbone != "linear" and len(self._labelled()) > 1

    def _is_small_image(self) -> bool:
        size = int(np.prod(self.input_shape_))
        return self.backbone == "auto" and len(self.input_shape_) > 1 and size <= MAX_PIXELS

    def _is_slow(self) -> bool:
        """Whether networks train one after the other, so that each candidate costs as much."""
        return not self._are_perceptrons()

    def _has_time(self) -> bool:
        if isinstance(self.effort, str):
            return True
        last = self._started + float(self.effort)
        # All processes of a run have to try the same.
        return bool(current().from_first(lambda: time.monotonic() < last))

    def _settings(self, seed: int) -> Settings:
        """Return the settings of every training: fewer and longer steps if it is to be fast."""
        settings = super()._settings(seed)
        is_long = len(self._labelled()) >= FAST_STEPS * FAST_BATCH
        if self.effort != "fast" or not (self._are_perceptrons() and is_long):
            return settings
        return replace(settings, batch_size=self.batch_size or FAST_BATCH, lr=self.lr or FAST_LR)

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

    def _set_augmentation(self, data: CrowdData, previous: Previous | None) -> None:
        self._trusted = False
        # If no augmentation is to be chosen, the next number is announced before any training.
        expect_trainings(len(KINDS) + self._max_candidates() + self._n_iterations() + self.distill)
        super()._set_augmentation(data, previous)

    def _expect_trainings(self, n_left: int) -> None:
        """Announce how many trainings on folds follow at most."""
        by = None if isinstance(self.effort, str) else self._started + float(self.effort)
        expect_trainings(n_left + self.distill, by)

    def _max_candidates(self) -> int:
        """Return how many candidates there are at most."""
        if self.init == "labels":
            return 1 + self._tries_scalings()
        mixups = 1 + (self.mixup == "auto")
        number = 1 + (self._trusted or self._has_pilots()) + self._tries_scalings()
        number += self._is_small_image() * mixups
        if self.effort == "fast" or (self._is_slow() and self.effort != "thorough"):
            return number
        number += mixups - 1 + (len(self._learners()) - 1) * (not self._trusted)
        if self.effort == "thorough":
            number += 1 + len([*neighbours(Candidate(), has_hidden=self._has_hidden())])
        return number

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
        if found.annotators is None:
            return None
        sizes = self._n_folds, self.table_.n_annotators, self.table_.n_classes, -1
        matrices = found.annotators.matrices().cpu().view(*sizes)
        losses = losses_by_network(self.table_, found.logits, matrices)
        if losses.mean() - losses.min() <= minimum_gain(self.table_.n_labels):
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
