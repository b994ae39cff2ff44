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

Where an item has several good labels, they tell more about its class than features do. Iterations
then do harm: the classifier learns the errors that annotators share, and confirms itself. On pairs
of product records, three labels each, labels alone find .938 of the true classes, and five
iterations .918. So the networks first learn what labels alone say (the default aggregation). If the
other labels of an item predict a label better than these networks do, out of fold, the networks are
calibrated to the labels and combined with them, in one iteration; otherwise all starts as above.

The classifier is the mean of the K networks.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from annotrace.aggregation import Aggregation, make
from annotrace.aggregation.gold_choice import choose_by_gold, has_enough_gold
from annotrace.aggregation.run_reader import SavedRun
from annotrace.aggregation.run_schema import NOT_NEGATIVE, Array, CandidateScore
from annotrace.crowd.dependent_annotators import DependentAnnotators
from annotrace.crowd.em import clamp_posterior
from annotrace.crowd.problem import is_comparable
from annotrace.crowd.result import CrowdResult
from annotrace.errors import InputError
from annotrace.labels.gold import gold_by_name
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.class_repair import MAX_TRIALS, ClassRepair, minimum_gain
from annotrace.methods.fold_networks import MAX_EPOCHS, FoldNetworks
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.recipe import Recipe
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.networks import max_saved_size
from annotrace.parameters import Count, NotNegative, Number, Positive
from annotrace.threads import GLOBAL_STATE
from annotrace.training import (
    CrowdData,
    Epoch,
    Settings,
    join_histories,
)

INITIAL_STEPS = 1300
LABEL_ITER = 1
"""Iterations where labels tell more than features: more of them let the classifier confirm itself.
"""

MIN_CONFIDENCE = 0.87
"""Mean confidence of labels alone below which they are not trusted. Those of simulated crowds that
lose more than .01 by trusting them have less than .85, such as ordered grades and few experts among
many (benchmarks/labels_or_features.py). Product records, which gain .02, have .91."""


@dataclass(kw_only=True, eq=False, repr=False)
class CrossFittedEM(FoldNetworks):
    """Networks on folds, and an EM in which nothing judges an item it has learned from.

    Parameters
    ----------
    n_folds : int
    n_iter : int
        Iterations of training the networks and running the inner EM, where features tell more about
        an item's class than its labels.
    mixup : float or "auto"
        Learn from mixtures of two items, weighted by Beta(mixup, mixup); 0 for none. "auto" trains
        first with 1 and then with 0, and takes 0 if that explains held-out labels significantly
        better: mixtures of few features lie where other classes are.
    init : {"auto", "labels", "trace", "votes"}
        What the networks learn first: the default aggregation of labels alone, the posterior of
        the trace-regularised model, or the shares of votes. "auto" takes labels alone where they
        predict another label of their item better than these networks do, otherwise "trace".
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

    n_iter: Count = 5
    init: Literal["auto", "labels", "trace", "votes"] = "auto"
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
        super()._build_modules(device)
        sizes = self.table_.n_annotators, self.table_.n_classes
        self.annotator_model_ = DependentAnnotators.uniform(*sizes).to(device)

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self.fold_ = self._assign_folds(settings.seed)
        self.label_loss_: list[float] = []
        learned = self._learn_from_labels(data, settings) if self._may_trust_labels() else None
        inner, history = learned or self._learn_jointly(data, settings)
        self._keep(inner, self._oof_logits(data))
        self._previous = None
        return history

    # Where labels tell more than features

    def _may_trust_labels(self) -> bool:
        wanted = self.init == "labels" or (
            self.init == "auto" and is_comparable(self.table_, self.gold_)
        )
        return wanted and self._previous is None

    def _learn_from_labels(
        self, data: CrowdData, settings: Settings
    ) -> tuple[HeldOutEM, list[Epoch]] | None:
        """Learn from the posterior by labels alone, unless that is poor or features tell more."""
        alone = self._aggregate(settings.seed)
        if self.init == "auto" and alone.confidence_.mean() < MIN_CONFIDENCE:
            return None
        fresh, inner = copy.deepcopy(self.network_), HeldOutEM(self.table_, self.fold_, self.gold_)
        by_labels = torch.from_numpy(alone.posterior_)
        inner.set_posterior(by_labels)
        inner.count_matrices(inner.posterior)
        # It draws its own random numbers, so that what follows does not depend on it.
        with data.random.reseeded(settings.seed):
            history = self._fit_networks(data, inner, settings, 0)
            logits = self._oof_logits(data)
            if self.init == "auto" and not inner.labels_outweigh(logits):
                self.network_ = fresh
                return None
            inner.calibrate_to(by_labels)
            inner.run(logits)
            more = self._iterate(inner, data, settings, range(1, LABEL_ITER + 1))
        return inner, join_histories(history, more)

    def _aggregate(self, seed: int) -> Aggregation:
        """Return the default aggregation of the labels; as a start, it need not converge."""
        known = gold_by_name(self.table_, self.gold_)
        with GLOBAL_STATE, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return make(random_state=seed).fit(self.table_, gold=known)

    # Where features tell more than labels

    def _learn_jointly(self, data: CrowdData, settings: Settings) -> tuple[HeldOutEM, list[Epoch]]:
        inner = HeldOutEM(self.table_, self.fold_, self.gold_)
        history = self._initialize(inner, data, settings)
        recount = self._previous is None and self.init == "votes"
        done = self._iterate(inner, data, settings, range(self.n_iter), recount=recount)
        inner, more = self._repair(inner, data, settings)
        return inner, join_histories(history, done, more)

    def _iterate(
        self,
        inner: HeldOutEM,
        data: CrowdData,
        settings: Settings,
        numbers: range,
        *,
        recount: bool = False,
    ) -> list[Epoch]:
        """Train the networks and run the inner EM in turn.

        With `recount` the matrices are first counted from the networks' predictions.
        """
        history: list[Epoch] = []
        for number in numbers:
            if number:
                self._forget_half(data)
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
        shared["augment"] = self.augment if callable(self.augment) else self.augment_
        recipe = Recipe(n_init=self.n_init, mixup=0.0, calibrate=False)
        model = TraceRegularized(**shared, structure="full", recipe=recipe)
        model.fit_matched(data.source, self.table_, self.gold_, self._checkpoints)
        return model

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

    @property
    def oof_proba_(self) -> NDArray[Any]:
        """Out-of-fold predictions, shape (n_items, n_classes)."""
        return self.result_.prior
