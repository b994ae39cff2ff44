"""Cross-fitted EM: our own method, and the recommended one.

EM around a network (`gem`) fails where labels are few, because the network has memorised the very
labels it is asked to judge. Here nothing judges an item that has learned from it. Items are in K
folds, and K networks learn together, each from the items outside its fold. What is maximised is
the likelihood of the labels given the features, with p and A *out of fold*::

    sum_n log sum_i p^(-k(n))(i | x_n)^(1/T) prod_r A^(-k(n))[r, i, label]

by iterations: the networks learn the current posterior of each item (with mixup), then an inner EM
finds posterior, matrices and temperature given the out-of-fold predictions (`HeldOutEM`). There is
no lambda and no early stopping. Between iterations the weights of the networks are averaged with
fresh ones, so that they forget what they learned from the last posterior.

The iterations find the nearest optimum, so the initialisation matters: it is the trace-regularised
model, the best of several by held-out likelihood. Where that is poor and the labels are not, as
with many good annotators, the iterations correct it; where votes mislead, as with annotators who
flip classes, it finds what votes do not. A class that collapses all the same is reinitialised
(`class_repair`), and kept if that explains the labels better.

The classifier is the mean of the K networks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation.gold_choice import choose_by_gold, has_enough_gold
from annotrace.aggregation.run_reader import SavedRun
from annotrace.aggregation.run_schema import NOT_NEGATIVE, Array, CandidateScore
from annotrace.crowd.dependent_annotators import DependentAnnotators
from annotrace.crowd.em import clamp_posterior
from annotrace.crowd.result import CrowdResult
from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.class_repair import MAX_TRIALS, ClassRepair, minimum_gain
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.recipe import MIXUPS, Recipe
from annotrace.methods.targets import cross_entropy
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.warm_start import Previous
from annotrace.networks import Ensemble, build_backbone, max_saved_size
from annotrace.parameters import AtLeastTwo, Count, NotNegative, Number, Positive
from annotrace.training import (
    Batch,
    CrowdData,
    Epoch,
    Settings,
    autocast,
    best_epoch,
    check_finite,
    draw_mixture,
    join_histories,
)

INITIAL_STEPS = 1300
MAX_EPOCHS = 60
PATIENCE = 5
FRESH_WEIGHT = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class CrossFittedEM(CrowdEstimator):
    """Networks on folds, and an EM in which nothing judges an item it has learned from.

    Parameters
    ----------
    n_folds : int
    n_iter : int
        Iterations of training the networks and running the inner EM.
    mixup : float or "auto"
        Learn from mixtures of two items, weighted by Beta(mixup, mixup); 0 for none. "auto" runs
        the first iteration with 1 and with 0, and takes 0 if that explains held-out labels
        significantly better: mixtures of few features lie where other classes are.
    init : {"trace", "votes"}
        Initialise with the trace-regularised model or with the shares of votes.
    n_init : int
        Initialisations of the trace-regularised model, of which the best is kept.
    epochs : int, optional
        Per iteration, and at most for the initial model; the first iteration has twice as many. By
        default the first iteration stops where labels of held-out items are explained best, after
        60 epochs at most.
    validation_fraction : float
        Fraction of items held out by the initial model alone; the iterations hold out every item in
        turn.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Out-of-fold classifier and matrices, combined with the item's labels.
    oof_proba_ : ndarray of shape (n_items, n_classes)
        Out-of-fold predictions: by the network that did not learn from the item.
    fold_ : ndarray of shape (n_items,)
    label_loss_ : list of float
        Negative log-likelihood per label after each iteration, out of fold. Iterations that
        reinitialised a collapsed class come last.
    epochs_ : int
        Per iteration, as given or found.
    mixup_ : float
        As given or found.
    temperature_ : float
        What logits are divided by.
    gold_candidates_ : list of dict
        What the posterior is a mixture of, if there are enough gold items to choose by; see
        `annotrace.aggregation.gold_choice`.

    Examples
    --------
    >>> from annotrace.data import load_digits
    >>> from annotrace.simulate import hammer_spammers, simulate_labels
    >>> train, test = load_digits().split(1400)
    >>> table = simulate_labels(train.y, hammer_spammers(5, 10, 0.4, random_state=0),
    ...                         labels_per_item=1, random_state=0)
    >>> model = CrossFittedEM(random_state=0, init="votes").fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.9)
    True
    """

    n_folds: AtLeastTwo = 5
    n_iter: Count = 5
    mixup: NotNegative | Literal["auto"] = "auto"
    init: Literal["trace", "votes"] = "trace"
    n_init: Count = 4

    method: ClassVar[str] = "crossfit"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **CrowdEstimator.saved_attributes,
        "fold_": Array("i", ("items",), NOT_NEGATIVE),
        "label_loss_": list[Number],
        "epochs_": Count,
        "mixup_": NotNegative,
        "temperature_": Positive,
        "gold_candidates_": list[CandidateScore],
    }

    def _build_modules(self, device: torch.device) -> None:
        sizes = self.table_.n_annotators, self.table_.n_classes
        self.annotator_model_ = DependentAnnotators.uniform(*sizes).to(device)
        self._previous: Previous | None = None

    def _initialize_from(self, previous: Previous) -> None:
        if self._networks.size != self.n_folds:
            raise InputError(
                f"Expected `n_folds` to be {self._networks.size}, as in the last fit, but got "
                f"{self.n_folds}: fit with `warm_start=False`."
            )
        self._previous = previous

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self.fold_ = self._assign_folds(settings.seed)
        inner = HeldOutEM(self.table_, self.fold_, self.gold_)
        history = self._initialize(inner, data, settings)
        self.label_loss_: list[float] = []
        recount = self._previous is None and self.init == "votes"
        done = self._iterate(inner, data, settings, range(self.n_iter), recount=recount)
        inner, more = self._repair(inner, data, settings)
        self._keep(inner, self._oof_logits(data))
        self._previous = None
        return join_histories(history, done, more)

    def _iterate(
        self, inner: HeldOutEM, data: CrowdData, settings: Settings, numbers: range, recount: bool
    ) -> list[Epoch]:
        """Train the networks and run the inner EM in turn.

        With `recount` the matrices are first counted from the networks' predictions.
        """
        history: list[Epoch] = []
        for number in numbers:
            if number:
                self._networks.shrink_towards(self._fresh_networks(data), FRESH_WEIGHT)
            history = join_histories(history, self._fit_networks(data, inner, settings, number))
            logits = self._oof_logits(data)
            if recount and number == numbers[0]:
                inner.count_matrices(torch.softmax(logits, 1))
            inner.run(logits)
            self.label_loss_.append(inner.label_loss)
        return history

    def _repair(
        self, inner: HeldOutEM, data: CrowdData, settings: Settings
    ) -> tuple[HeldOutEM, list[Epoch]]:
        """Reinitialise collapsed classes, as long as that explains the labels better.

        Returns
        -------
        inner : HeldOutEM
            As it ended; the networks are those that belong to it.
        history : list of Epoch
            Of the iterations that were kept.
        """
        history: list[Epoch] = []
        repair = self._class_repair(inner)
        for trial in range(MAX_TRIALS):
            if not repair.splits:
                break
            before = copy.copy(inner), copy.deepcopy(self.network_), self.label_loss_.copy()
            inner.set_posterior(torch.from_numpy(repair.initial_posterior(repair.splits.pop(0))))
            first = self.n_iter * (2 * trial + 1)
            numbers = range(first, first + 2 * self.n_iter)
            done = self._iterate(inner, data, settings, numbers, recount=True)
            if inner.label_loss < before[0].label_loss - minimum_gain(self.table_.n_labels):
                history, repair = join_histories(history, done), self._class_repair(inner)
            else:
                inner, self.network_, self.label_loss_ = before
        return inner, history

    def _class_repair(self, inner: HeldOutEM) -> ClassRepair:
        posterior, matrices = inner.posterior.double(), inner.matrices().double()
        return ClassRepair(self.table_, posterior.numpy(), matrices.numpy())

    def _initialize(self, inner: HeldOutEM, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Set the first posterior and matrices of the inner EM; it has the votes already."""
        if self._previous is not None:
            inner.set_matrices(torch.from_numpy(self._previous.matrices(self.table_)))
            inner.run(self._oof_logits(data))
            return []
        if self.init == "votes":
            inner.count_matrices(inner.posterior)
            return []
        first = self._initial_model(data, settings)
        inner.posterior = torch.from_numpy(first.posterior_).to(inner.posterior.dtype)
        inner.set_matrices(torch.from_numpy(first.confusion_))
        return first.history_

    def _initial_model(self, data: CrowdData, settings: Settings) -> TraceRegularized:
        steps_per_epoch = len(self._labelled()) / settings.batch_size
        epochs = int(np.clip(round(INITIAL_STEPS / steps_per_epoch), 3, MAX_EPOCHS))
        shared = {field.name: getattr(self, field.name) for field in fields(CrowdEstimator)}
        shared |= {"schedule": None, "checkpoint": None, "warm_start": False}
        shared["epochs"] = epochs if self.epochs is None else min(epochs, self.epochs)
        shared["random_state"] = settings.seed
        recipe = Recipe(n_init=self.n_init, mixup=0.0, calibrate=False)
        model = TraceRegularized(**shared, structure="full", recipe=recipe)
        model.fit_matched(data.source, self.table_, self.gold_, self._checkpoints)
        return model

    def _assign_folds(self, seed: int) -> NDArray[np.int64]:
        """Assign items to folds at random, those of a previous fit to the same fold."""
        n_items = self.table_.n_items
        fold = np.empty(n_items, np.int64)
        fold[np.random.default_rng(seed).permutation(n_items)] = np.arange(n_items) % self.n_folds
        if self._previous is None:
            return fold
        before = self._previous.folds(self.table_)
        return np.where(before >= 0, before, fold)

    def _fit_networks(
        self, data: CrowdData, inner: HeldOutEM, settings: Settings, number: int
    ) -> list[Epoch]:
        """Train each network on the posterior of the items outside its fold.

        The first iteration, with mixup and without unless that is given, stops where the labels of
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
        """Run the first iteration; if `mixup` is "auto", use none where significantly better."""
        self.mixup_ = MIXUPS[0] if self.mixup == "auto" else float(self.mixup)
        fresh = copy.deepcopy(self.network_)
        history = self._first_iteration(data, inner, settings)
        if self.mixup != "auto":
            return history
        loss = inner.score(self._oof_logits(data))
        kept = self.mixup_, self.epochs_, self.network_
        self.mixup_, self.network_ = MIXUPS[1], fresh
        without = self._first_iteration(data, inner, settings)
        gain = loss - inner.score(self._oof_logits(data))
        if gain > minimum_gain(self.table_.n_labels):
            return without
        self.mixup_, self.epochs_, self.network_ = kept
        return history

    def _first_iteration(
        self, data: CrowdData, inner: HeldOutEM, settings: Settings
    ) -> list[Epoch]:
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
            losses = cross_entropy(self._networks.each(rows), target)
            return (losses * ~held_out).sum() / len(batch.item)

        return objective

    def _oof_logits(self, data: CrowdData) -> Tensor:
        """Return the logits of each item by the network that did not learn from it."""
        fold = torch.from_numpy(self.fold_).to(data.device)
        networks = self._networks.eval()

        def logits(item: Tensor) -> Tensor:
            with autocast(data.device, self.precision):
                each = networks.each(networks.stage(data.inputs(item)))
            return each[fold[item], torch.arange(len(item), device=item.device)]

        return check_finite(data.map(logits).cpu().double())

    def _keep(self, inner: HeldOutEM, logits: Tensor) -> None:
        self.temperature_ = inner.temperature
        proba = torch.softmax(logits / inner.temperature, 1).numpy()
        self._oof_proba = clamp_posterior(proba, self.gold_)
        self.gold_candidates_: list[CandidateScore] = []
        self._held_out: NDArray[Any] | None = None
        self._networks.temperature.fill_(inner.temperature)
        device = self._networks.temperature.device
        self.annotator_model_ = inner.discount(logits).float().to(device)
        self._posterior: NDArray[Any] = inner.posterior.double().numpy()
        if has_enough_gold(self.table_, self.gold_):
            held_out = inner.without_gold(logits).double().numpy()
            choice = choose_by_gold(self.table_, self.gold_, held_out, proba)
            self._posterior, self._held_out, self.gold_candidates_ = choice

    def _make_result(self, data: CrowdData) -> CrowdResult:
        unlabelled = self.table_.labels_per_item() == 0
        if np.any(unlabelled):
            log_p = self.logits(data).cpu().double().numpy()[unlabelled]
            self._posterior[unlabelled] = np.exp(log_p)
        result = self._result(self._posterior, self._oof_proba)
        return replace(result, held_out=self._held_out)

    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""
        most = max_saved_size(run.modules.get("network", {}))
        used = int(run.attributes(self.saved_attributes)["fold_"].max()) + 1
        if not used <= self.n_folds <= most:
            raise InputError(
                f"Expected `n_folds` to be at least {used}, as in `fold_`, and at most {most}, the "
                f"number of networks, but got {self.n_folds}."
            )
        super().restore(run)

    def _claimed_size(self) -> int:
        return self.n_folds * super()._claimed_size()

    @property
    def oof_proba_(self) -> NDArray[Any]:
        """Out-of-fold predictions, shape (n_items, n_classes)."""
        return self.result_.prior

    @property
    def _networks(self) -> Ensemble:
        assert isinstance(self.network_, Ensemble)
        return self.network_

    def _fresh_networks(self, data: CrowdData) -> Ensemble:
        fresh = self._build_network(data)
        assert isinstance(fresh, Ensemble)
        return fresh

    def _network_for(self, sample: Tensor) -> Ensemble:
        return Ensemble(
            [build_backbone(self.backbone, sample, self._n_outputs()) for _ in range(self.n_folds)]
        )
