"""Cross-fitted EM: our own method, and the recommended one.

EM around a network (`gem`) fails where labels are few, because the network has memorised the very
labels it is asked to judge. Here nothing judges an item that has learned from it. Items are in K
folds, and K networks learn together, each from the items outside its fold. What is maximised is
the likelihood of the labels given the features, with p and A *out of fold*::

    sum_n log sum_i p^(-k(n))(i | x_n)^(1/T) prod_r A^(-k(n))[r, i, label]

1. **Start.** The networks learn the trace-regularised model, each with matrices of its own
   (`fold_trace`), or what labels alone say, with mixup or without, on features scaled in one way
   or another (`search`). The best start is chosen without the truth by out-of-fold predictions.
   If one network found far more likely matrices than the others, all start again from it.
2. **Iterations.** An inner EM finds posterior, matrices and temperature given the out-of-fold
   predictions (`HeldOutEM`), and new networks learn its posterior. Epochs are chosen by the
   likelihood of the labels of all items, out of fold, so no items are lost to a validation split.
3. **Repair.** Swapped classes get the names that fit the reports best before the iterations, and a
   class that collapses is reinitialised (`class_repair`), and kept if that explains the labels
   better.
4. **Average.** The classifier is the mean of the networks of all iterations; their out-of-fold
   predictions, averaged, give the last posterior. If networks of the start that learned from labels
   alone are better by held-out labels, they take their place (`plain_guard`). On request, one
   network learns the posterior of all items, and is the classifier (`distilled_folds`).

Where an item has several good labels, they tell more about its class than features do. Iterations
then do harm: the classifier learns the errors that annotators share, and confirms itself. On pairs
of product records, three labels each, labels alone find .938 of the true classes, and five
iterations .918. So if the other labels of an item predict a label better than networks that learned
what labels alone say, these networks are calibrated to the labels and combined with them, in one
iteration.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
from annotrace.methods.fold_networks import MAX_EPOCHS, Round
from annotrace.methods.fold_search import FoldSearch, Start
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.plain_guard import Plain, better_plain
from annotrace.methods.search import Candidate, Chosen, Trial
from annotrace.networks import Ensemble, max_saved_size
from annotrace.parameters import Count, Number, Positive
from annotrace.training import CrowdData, Epoch, Settings, join_histories

LABEL_ITER = 1
"""Iterations where labels tell more than features: more of them let the classifier confirm itself.
"""

N_ITER = {"fast": 1, "default": 2, "thorough": 4}

LONGER = 1.5
"""Epochs of an iteration as a multiple of those of the start: a posterior is less noisy than
labels, and the likelihood of the labels that it was inferred from cannot say when to stop."""


@dataclass(kw_only=True, eq=False, repr=False)
class CrossFittedEM(FoldSearch):
    """Networks on folds, and an EM in which nothing judges an item it has learned from.

    Parameters
    ----------
    n_folds : int, optional
        By default 5 for perceptrons, which train together, and 3 for other networks.
    effort, mixup, init
        See `annotrace.methods.fold_candidates.FoldCandidates`.
    distill : bool
        Train one network on the posterior of all items at last, which then is the classifier in
        place of the mean of networks. `posterior_` and `oof_proba_` stay those of the networks on
        folds.
    n_iter : int, optional
        Iterations of the inner EM and the training of new networks, where features tell more about
        an item's class than its labels. By default as many as the effort says.
    epochs : int, optional
        Per training; the first have twice as many. By default training stops where labels are
        explained best out of fold, after 60 epochs at most.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Out-of-fold classifier and matrices, combined with the item's labels.
    oof_proba_ : ndarray of shape (n_items, n_classes)
        Out-of-fold predictions: by the networks that did not learn from the item.
    fold_ : ndarray of shape (n_items,)
    label_loss_ : list of float
        Negative log-likelihood per label after each iteration, out of fold. Iterations that
        reinitialised a collapsed class come last.
    epochs_ : int
        Per training of an iteration, as given or found.
    search_ : list of dict
        The ways to learn that were tried, with their criteria; see `annotrace.methods.search`.
    chosen_ : dict
        The one that was chosen.
    n_rounds_ : int
        Iterations whose networks are averaged.
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
    >>> model = CrossFittedEM(random_state=0, effort="fast").fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.9)
    True
    """

    n_iter: Count | None = None

    method: ClassVar[str] = "crossfit"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **CrowdEstimator.saved_attributes,
        "fold_": Array("i", ("items",), NOT_NEGATIVE),
        "label_loss_": list[Number],
        "epochs_": Count,
        "search_": list[Trial],
        "chosen_": Chosen,
        "n_rounds_": Count,
        "temperature_": Positive,
        "gold_candidates_": list[CandidateScore],
    }

    def _build_modules(self, device: torch.device) -> None:
        super()._build_modules(device)
        sizes = self.table_.n_annotators, self.table_.n_classes
        self.annotator_model_ = DependentAnnotators.uniform(*sizes).to(device)

    def _learn_on_folds(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self.fold_ = self._assign_folds(settings.seed)
        self.label_loss_: list[float] = []
        self._started = time.monotonic()
        inner = HeldOutEM(self.table_, self.fold_, self.gold_)
        plain: list[Plain] = []
        if self._previous is not None:
            history = self._resume_from(data, inner, self._previous.matrices(self.table_))
            rounds = self._iterate(data, inner, settings, range(1, 1 + self._n_iterations()))
        else:
            start = self._find_start(data, inner, settings)
            history, self.chosen_ = start.history, start.candidate.to_dict()
            longer = LONGER if start.alone is None else 1
            self.epochs_ = self.epochs or min(MAX_EPOCHS, math.ceil(longer * start.epochs))
            if start.alone is not None:
                return self._combine(data, inner, settings, start, start.alone)
            inner.restart(start.logits)
            self._name_classes(inner)
            rounds = self._iterate(data, inner, settings, range(1, 1 + self._n_iterations()))
            inner, rounds = self._repair(data, inner, settings, rounds)
            plain = start.plain
        logits = self._average(rounds)
        last = rounds[-1]._replace(logits=logits)
        tried = self._judge(inner, Candidate(**self.chosen_), last)
        better = better_plain(tried, plain, self.table_)
        if better is not None:
            logits = self._use_plain(inner, better)
        self._keep(inner, logits)
        self._previous = None
        return join_histories(history, *(each.history for each in rounds))

    def _use_plain(self, inner: HeldOutEM, plain: Plain) -> Tensor:
        """Use networks that learned from labels alone; return their out-of-fold logits."""
        for number, trial in enumerate(self.search_):
            trial["chosen"] = number == plain.number
        self.chosen_ = plain.tried.candidate.to_dict()
        self.epochs_ = self.epochs or plain.round.epochs
        logits = self._average([plain.round])
        inner.restart(logits)
        return logits

    def _resume_from(
        self, data: CrowdData, inner: HeldOutEM, matrices: NDArray[Any]
    ) -> list[Epoch]:
        inner.set_matrices(torch.from_numpy(matrices))
        assert self._previous is not None
        inner.run(self._logits_before(data, self._previous))
        self.search_ = []
        return []

    def _combine(
        self,
        data: CrowdData,
        inner: HeldOutEM,
        settings: Settings,
        start: Start,
        alone: Tensor,
    ) -> list[Epoch]:
        """Combine networks that learned what labels alone say with the labels, in one iteration."""
        inner.set_posterior(alone)
        inner.count_matrices(inner.posterior)
        inner.calibrate_to(alone)
        inner.run(start.logits)
        rounds = self._iterate(data, inner, settings, range(1, LABEL_ITER + 1), restart=False)
        self._keep(inner, self._average(rounds))
        return join_histories(start.history, *(each.history for each in rounds))

    def _n_iterations(self) -> int:
        if self.n_iter is not None:
            return self.n_iter
        return N_ITER[self.effort if isinstance(self.effort, str) else "default"]

    def _iterate(
        self,
        data: CrowdData,
        inner: HeldOutEM,
        settings: Settings,
        numbers: range,
        *,
        restart: bool = True,
    ) -> list[Round]:
        """Train networks on the posterior and run the inner EM in turn."""
        self._expect_trainings(len(numbers))
        rounds: list[Round] = []
        candidate = Candidate(**self.chosen_)
        for number in numbers:
            if rounds and not self._has_time():
                break
            part = replace(settings, epochs=self.epochs_, seed=settings.seed + 7919 * number)
            loss = self._posterior_loss(data, inner.posterior)
            rounds.append(self._train_networks(data, candidate, part, loss, None))
            (inner.restart if restart else inner.run)(rounds[-1].logits)
            self.label_loss_.append(inner.label_loss)
        return rounds

    def _repair(
        self, data: CrowdData, inner: HeldOutEM, settings: Settings, rounds: list[Round]
    ) -> tuple[HeldOutEM, list[Round]]:
        """Reinitialise collapsed classes, as long as that explains the labels better."""
        n_iter = self._n_iterations()
        repair = self._class_repair(inner)
        for trial in range(MAX_TRIALS):
            if not repair.splits:
                break
            before = copy.copy(inner), self.label_loss_.copy()
            inner.set_posterior(torch.from_numpy(repair.initial_posterior(repair.splits.pop(0))))
            first = 1 + n_iter * (trial + 1)
            again = self._iterate(data, inner, settings, range(first, first + n_iter))
            if inner.label_loss < before[0].label_loss - minimum_gain(self.table_.n_labels):
                rounds, repair = again, self._class_repair(inner)
            else:
                inner, self.label_loss_ = before
        return inner, rounds

    def _name_classes(self, inner: HeldOutEM) -> None:
        """Give swapped classes the names that fit the reports best."""
        repair = self._class_repair(inner)
        if repair.is_swapped:
            inner.set_posterior(torch.from_numpy(repair.initial_posterior(None)))

    def _class_repair(self, inner: HeldOutEM) -> ClassRepair:
        posterior, matrices = inner.posterior.double(), inner.matrices().double()
        return ClassRepair(self.table_, posterior.numpy(), matrices.numpy())

    def _average(self, rounds: list[Round]) -> Tensor:
        """Use the networks of all rounds; return their mean out-of-fold log-probabilities."""
        self.network_ = Ensemble.joined([each.networks for each in rounds])
        self.n_rounds_ = len(rounds)
        if len(rounds) == 1:
            return rounds[0].logits
        return torch.stack([each.logits.log_softmax(1) for each in rounds]).mean(0)

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
            self._posterior[unlabelled] = self._log_proba(data).exp().numpy()[unlabelled]
        result = self._result(self._posterior, self._oof_proba)
        return replace(result, held_out=self._held_out)

    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""
        most = max_saved_size(run.modules.get("network", {}))
        self.input_kind_ = run.description["input_kind"]
        self.input_shape_ = tuple(run.description["input_shape"])
        saved = run.attributes(self.saved_attributes)
        used, n_rounds = int(saved["fold_"].max()) + 1, int(saved["n_rounds_"])
        if not (used <= self._n_folds and (self.distill or n_rounds * self._n_folds <= most)):
            raise InputError(
                f"Expected `n_folds` to be at least {used}, as in `fold_`, and at most "
                f"{most // n_rounds}, by the number of networks, but got {self._n_folds}."
            )
        super().restore(run)

    @property
    def oof_proba_(self) -> NDArray[Any]:
        """Out-of-fold predictions, shape (n_items, n_classes)."""
        return self.result_.prior
