"""Cross-fitted EM: a method of our own.

EM around a network (`gem`) fails where labels are few, because the network has memorised the very
labels it is asked to judge. Here nothing judges an item that has learned from it. Items are in K
folds, and K networks learn together, each from the items outside its fold. What is maximised is
the likelihood of the labels given the features, with p and A *held out*::

    sum_n log sum_i p^(-k(n))(i | x_n)^(1/T) prod_r A^(-k(n))[r, i, label]

in rounds: the networks learn the current posterior of each item (with mixup), then an inner EM
finds posterior, matrices and temperature given the held-out predictions (`HeldOutEM`). There is no
lambda and no early stopping. Between rounds the networks go half-way back to a fresh start, so
that they do not remember what they learned from the last posterior.

Rounds find the nearest optimum, so the start matters: it is the trace-regularised model, the best
of several restarts by held-out likelihood. Where that is poor and the labels are not, as with many
good annotators, the rounds mend it; where the votes mislead, as with annotators who flip classes,
it finds the way that votes do not. Where a class is lost all the same, it is founded anew from a
part of another (`lost_classes`), and kept if that explains the labels better.

The classifier is the mean of the K networks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.aggregation.held_out import HeldOutEM
from annotrace.diagnosis.confidence import settled
from annotrace.diagnosis.metrics import with_pool
from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.continuing import Before
from annotrace.methods.lost_classes import TRIALS, LostClasses, worth_it
from annotrace.methods.steps import PREDICT_BATCH
from annotrace.methods.targets import cross_entropy
from annotrace.methods.trace_regularized import MIXUPS, TraceRegularized
from annotrace.models import FixedConfusion
from annotrace.networks import Ensemble, build_backbone
from annotrace.parameters import AtLeastTwo, Count, NotNegative
from annotrace.training import (
    Batch,
    CrowdData,
    Epoch,
    Settings,
    autocast,
    best_epoch,
    draw_mixture,
    join_histories,
)

STEPS_OF_THE_START = 1300
MOST_EPOCHS = 60
PATIENCE = 5
AFRESH = 0.5

SHARED = (
    "backbone",
    "batch_size",
    "lr",
    "weight_decay",
    "precision",
    "cuda_graphs",
    "device",
    "verbose",
    "callbacks",
)


@dataclass(kw_only=True, eq=False, repr=False)
class CrossFittedEM(CrowdEstimator):
    """Networks on folds, and an EM that never judges an item by what learned from it.

    Parameters
    ----------
    folds : int
        Parts that items are held out with in turn.
    rounds : int
        Times that the networks learn and the inner EM answers.
    mixup : float or "auto"
        Learn from mixtures of two items, by weights from Beta(mixup, mixup); 0 for none. "auto"
        does the first round with 1 and with 0, and takes 0 if that explains held-out labels surely
        better: mixtures of few features lie where other classes are.
    start : {"trace", "votes"}
        Begin from the trace-regularised model or from the shares of votes.
    restarts : int
        Trainings of the trace-regularised start, of which the best is taken.
    epochs : int, optional
        Of a round; the first has twice as many. By default the first round ends where labels of
        held-out items are explained best, with 60 epochs at most.
    validation : float
        Share of items held out by the start alone; the rounds hold out every item in turn.
    **others
        See `CrowdEstimator`. `protocol`, `select` and `patience` have no effect: labels of held-out
        items choose.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Held-out classifier and held-out matrices, with the item's labels.
    held_out_ : ndarray of shape (n_items, n_classes)
        What is said of each item by the network that did not learn from it.
    fold_ : ndarray of shape (n_items,)
        The part that each item was held out with.
    label_loss_ : list of float
        Negative log-likelihood of a label after each round, held out as above. Rounds that founded
        a lost class come after the others.
    epochs_ : int
        Of a round, as given or found.
    mixup_ : float
        As given or found.
    temperature_ : float
        What logits are divided by, as the labels ask for.

    Examples
    --------
    >>> from annotrace.data import load_digits
    >>> from annotrace.simulate import hammer_spammers, simulate_labels
    >>> train, test = load_digits().split(1400)
    >>> table = simulate_labels(train.y, hammer_spammers(5, 10, 0.4, random_state=0),
    ...                         labels_per_item=1, random_state=0)
    >>> model = CrossFittedEM(random_state=0, start="votes").fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.9)
    True
    """

    folds: AtLeastTwo = 5
    rounds: Count = 5
    mixup: NotNegative | Literal["auto"] = "auto"
    start: Literal["trace", "votes"] = "trace"
    restarts: Count = 4

    method: ClassVar[str] = "crossfit"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self.fold_ = self._deal_folds(settings.seed)
        inner = HeldOutEM(self.table_, self.fold_, self.gold_)
        history = self._begin(inner, data, settings)
        self.label_loss_: list[float] = []
        anew = not self._has_matrices
        done = self._do_rounds(inner, data, settings, range(self.rounds), anew=anew)
        inner, more = self._find_lost_classes(inner, data, settings)
        self._keep(inner, self._held_out_logits(data))
        return join_histories(join_histories(history, done), more)

    def _do_rounds(
        self, inner: HeldOutEM, data: CrowdData, settings: Settings, numbers: range, *, anew: bool
    ) -> list[Epoch]:
        """Let networks learn and the inner EM answer in turn, with new matrices at first if asked.

        New matrices are counted from what the networks say, old ones are gone on from.
        """
        history: list[Epoch] = []
        for number in numbers:
            if number:
                self._networks.shrink_towards(self._fresh_networks(data), AFRESH)
            history = join_histories(history, self._fit_networks(data, inner, settings, number))
            logits = self._held_out_logits(data)
            if anew and number == numbers[0]:
                inner.start(torch.softmax(logits, 1))
            inner.run(logits)
            self.label_loss_.append(inner.label_loss)
        return history

    def _find_lost_classes(
        self, inner: HeldOutEM, data: CrowdData, settings: Settings
    ) -> tuple[HeldOutEM, list[Epoch]]:
        """Found lost classes anew, each as long as that explains the labels better.

        Returns
        -------
        inner : HeldOutEM
            As it ended, the networks being those that belong to it.
        history : list of Epoch
            Of the rounds that were worth it.
        """
        history: list[Epoch] = []
        lost = self._lost_classes(inner)
        for trial in range(TRIALS):
            if not lost.foundings:
                break
            before = copy.copy(inner), copy.deepcopy(self.network_), self.label_loss_.copy()
            inner.begin_with(torch.from_numpy(lost.begin_posterior(lost.foundings.pop(0))))
            first = self.rounds * (2 * trial + 1)
            numbers = range(first, first + 2 * self.rounds)
            done = self._do_rounds(inner, data, settings, numbers, anew=True)
            if inner.label_loss < before[0].label_loss - worth_it(self.table_.n_labels):
                history, lost = join_histories(history, done), self._lost_classes(inner)
            else:
                inner, self.network_, self.label_loss_ = before
        return inner, history

    def _lost_classes(self, inner: HeldOutEM) -> LostClasses:
        posterior, matrices = inner.posterior.double(), inner.matrices().double()
        return LostClasses(self.table_, posterior.numpy(), matrices.numpy())

    def _begin(self, inner: HeldOutEM, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Give the inner EM its first posterior and matrices; the votes are there already."""
        self._has_matrices = self._go_on is not None or self.start == "trace"
        if self._go_on is not None:
            matrices = self._go_on.matrices(self.table_)
            assert matrices is not None
            inner.start_from(torch.from_numpy(matrices))
            inner.run(self._held_out_logits(data))
            return []
        if self.start == "votes":
            inner.start(inner.posterior)
            return []
        first = self._first_model(data, settings)
        inner.posterior = torch.from_numpy(first.posterior_).to(inner.posterior.dtype)
        inner.start_from(torch.from_numpy(first.confusion_))
        return first.history_

    def _first_model(self, data: CrowdData, settings: Settings) -> TraceRegularized:
        shared = {name: getattr(self, name) for name in SHARED}
        steps_an_epoch = len(self._labelled()) / settings.batch_size
        epochs = int(np.clip(round(STEPS_OF_THE_START / steps_an_epoch), 3, MOST_EPOCHS))
        model = TraceRegularized(
            **shared,
            pool=False,
            mixup=0.0,
            restarts=self.restarts,
            epochs=epochs,
            validation=self.validation,
            calibrate=False,
            random_state=settings.seed,
        )
        model.input_shape_ = self.input_shape_
        model._fit_matched(data.source, self.table_, self.gold_, self._checkpoints)
        return model

    def _deal_folds(self, seed: int) -> NDArray[np.int64]:
        """Deal the items out to folds, those of an earlier fit as they were."""
        n_items = self.table_.n_items
        fold = np.empty(n_items, np.int64)
        fold[np.random.default_rng(seed).permutation(n_items)] = np.arange(n_items) % self.folds
        if self._go_on is None:
            return fold
        before = self._go_on.folds(self.table_)
        return np.where(before >= 0, before, fold)

    def _fit_networks(
        self, data: CrowdData, inner: HeldOutEM, settings: Settings, number: int
    ) -> list[Epoch]:
        """Let each network learn the posterior of the items outside its fold.

        The first round, with mixup and without unless that is given, ends where the labels of
        held-out items are explained best, unless the epochs are given; the others are half as long.
        """
        if number == 0 and self._go_on is None:
            return self._choose_mixup(data, inner, settings)
        if number == 0:
            self.mixup_ = self._go_on_mixup()
            earlier: int = getattr(self, "epochs_", 2)
            self.epochs_ = self.epochs or earlier
        part = replace(settings, epochs=self.epochs_, seed=settings.seed + 7919 * number)
        return self._run_networks(data, inner, part)

    def _choose_mixup(self, data: CrowdData, inner: HeldOutEM, settings: Settings) -> list[Epoch]:
        """Do the first round as `mixup` says, or with it, and without if that is surely better."""
        self.mixup_ = MIXUPS[0] if self.mixup == "auto" else float(self.mixup)
        fresh = copy.deepcopy(self.network_)
        history = self._first_round(data, inner, settings)
        if self.mixup != "auto":
            return history
        loss = inner.judge(self._held_out_logits(data))
        kept = self.mixup_, self.epochs_, self.network_
        self.mixup_, self.network_ = MIXUPS[1], fresh
        without = self._first_round(data, inner, settings)
        gain = loss - inner.judge(self._held_out_logits(data))
        if gain > worth_it(self.table_.n_labels):
            return without
        self.mixup_, self.epochs_, self.network_ = kept
        return history

    def _first_round(self, data: CrowdData, inner: HeldOutEM, settings: Settings) -> list[Epoch]:
        if self.epochs is not None:
            self.epochs_ = self.epochs
            return self._run_networks(data, inner, replace(settings, epochs=2 * self.epochs))
        part = replace(settings, epochs=MOST_EPOCHS, patience=PATIENCE)
        history = self._run_networks(
            data, inner, part, lambda: inner.judge(self._held_out_logits(data))
        )
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
        objective = self._objective(inner.posterior.float().to(data.device), data.device)
        return self._run(self._networks, objective, data, self._labelled(), settings, score)

    def _go_on_mixup(self) -> float:
        """Give the mixup of the fit that is gone on from, unless it is given."""
        earlier: float = getattr(self, "mixup_", MIXUPS[0])
        return earlier if self.mixup == "auto" else float(self.mixup)

    def _objective(self, targets: Tensor, device: torch.device) -> Callable[[Batch], Tensor]:
        fold = torch.from_numpy(self.fold_).to(device)
        network = torch.arange(self.folds, device=device)[:, None]
        mixup = self.mixup_

        def objective(batch: Batch) -> Tensor:
            held_out = fold[batch.item] == network
            rows, target = self._networks.stage(batch.inputs), targets[batch.item]
            if mixup:
                mixture = draw_mixture(mixup, fold[batch.item])
                rows, target = mixture.mix(rows), mixture.mix(target)
                held_out |= held_out[:, mixture.partner]
            losses = cross_entropy(self._networks.each(rows), target)
            return (losses * ~held_out).sum() / len(batch.item)

        return objective

    @torch.no_grad()
    def _held_out_logits(self, data: CrowdData) -> Tensor:
        """Give what is said of each item by the network that did not learn from it."""
        fold = torch.from_numpy(self.fold_).to(data.device)
        parts = []
        self.network_.eval()
        for item in torch.arange(len(fold), device=data.device).split(PREDICT_BATCH):
            with autocast(data.device, self.precision):
                each = self._networks.each(self._networks.stage(data.inputs(item)))
            parts.append(each[fold[item], torch.arange(len(item), device=item.device)])
        return torch.cat(parts).cpu().double()

    def _without_labels(self) -> NDArray[Any]:
        return self.held_out_

    def _keep(self, inner: HeldOutEM, logits: Tensor) -> None:
        self.temperature_ = inner.temperature
        said = torch.softmax(logits / inner.temperature, 1).numpy()
        self.held_out_ = settled(said, self.gold_)
        self._networks.temperature.fill_(inner.temperature)
        self._layer.set_matrices(inner.matrices())
        matrices = inner.matrices().double().numpy()
        self.confusion_ = with_pool(matrices, self.table_.labels_per_annotator())
        self._posterior = inner.posterior.double().numpy()

    def _read_out(self, data: CrowdData) -> None:
        self.posterior_ = self._posterior
        unlabelled = self.table_.labels_per_item() == 0
        if np.any(unlabelled):
            log_p = self._logits(data).cpu().double().numpy()[unlabelled]
            self.posterior_[unlabelled] = np.exp(log_p)

    @property
    def _networks(self) -> Ensemble:
        assert isinstance(self.network_, Ensemble)
        return self.network_

    def _fresh_networks(self, data: CrowdData) -> Ensemble:
        fresh = self._build_network(data).to(data.device)
        assert isinstance(fresh, Ensemble)
        return fresh

    def _network_for(self, sample: Tensor) -> Ensemble:
        return Ensemble(
            [build_backbone(self.backbone, sample, self._n_outputs()) for _ in range(self.folds)]
        )

    def _build_parts(self, device: torch.device) -> None:
        self._layer = FixedConfusion(self.table_.n_annotators, self.table_.n_classes).to(device)
        self._go_on: Before | None = None

    def _go_on_from(self, before: Before) -> None:
        if self._networks.size != self.folds:
            raise InputError(
                f"Expected `folds` to be {self._networks.size}, as in the last fit, but got "
                f"{self.folds}: fit with `warm_start=False`."
            )
        self._go_on = before

    def _parts(self) -> dict[str, nn.Module]:
        return {"network": self.network_, "confusion": self._layer}

    def _columns(self) -> FixedConfusion:
        return self._layer
