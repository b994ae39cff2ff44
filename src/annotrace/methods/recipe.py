"""What makes training robust, for any method that trains by gradient descent.

Held-out label likelihood ranks trainings as the truth does, so it can choose among them without any
truth. The recipe

1. trains from several initialisations, over the options of parameters that are "auto" (the
   structure of the annotator model, for example), and keeps the best;
2. trains the best once more without mixup, and keeps that if it is significantly better;
3. trains again where classes have collapsed or are swapped (`class_repair`);
4. divides the logits by the temperature at which held-out labels are most likely;
5. on request, trains a new network on the posterior of all items.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.em import expected_counts, matrices_from_counts
from annotrace.crowd.pool import pooled_matrix
from annotrace.crowd.result import fits_array
from annotrace.crowd.temperature import held_out_temperature, held_out_temperature_of
from annotrace.diagnosis.metrics import is_permuted
from annotrace.labels import LabelTable
from annotrace.methods.class_repair import MAX_TRIALS, ClassRepair, minimum_gain
from annotrace.parameters import Count, NotNegative, check_parameters
from annotrace.training import CrowdData, Epoch, Settings, held_out_loss

if TYPE_CHECKING:
    from annotrace.methods.network_estimator import NetworkEstimator

MIXUPS = (1.0, 0.0)
"""What `mixup="auto"` tries: the second replaces the first if it is significantly better."""

PATIENCE = 1500
"""Steps without a better held-out score after which a training stops, if `patience` is None. On
10,000 items trainings were best after two epochs and went on to the last, the 60th."""


class Initialization(NamedTuple):
    """What a training starts from: matrices for those that learn them, or a posterior."""

    matrices: NDArray[np.float64]
    posterior: NDArray[np.float64] | None = None


class Trial(NamedTuple):
    """What sets one training apart from the others.

    Attributes
    ----------
    params : mapping
        Values of the parameters that are "auto".
    mixup : float
        Parameter of mixup's Beta distribution; 0 for none.
    number : int
        From 0; each number draws another initial network.
    start : Initialization or None
    """

    params: Mapping[str, Any]
    mixup: float = 0.0
    number: int = 0
    start: Initialization | None = None


class Trained(NamedTuple):
    """A training and its outcome.

    Attributes
    ----------
    trial : Trial
    learned : dict
        The attributes of the estimator after the training, by name.
    history : list of Epoch
    is_swapped : bool
        Whether the classes fit the reports better in another order.
    """

    trial: Trial
    learned: dict[str, Any]
    history: list[Epoch]
    is_swapped: bool

    @property
    def loss(self) -> float:
        """The loss of the held-out labels."""
        return held_out_loss(self.history)

    @property
    def rank(self) -> tuple[bool, float]:
        """A key to sort trainings by, the best first."""
        return self.is_swapped, self.loss


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train robustly.

    Without held-out items (``validation_fraction=0``) there is nothing to choose by: the recipe
    then trains once, with the first options and mixup, and does not calibrate.

    Parameters
    ----------
    n_init : int
        Initialisations; each combination of "auto" parameters is tried at least once.
    mixup : float or "auto"
        Learn from mixtures of two items, weighted by Beta(mixup, mixup); 0 for none. "auto" takes 1
        unless 0 explains held-out labels significantly better: mixtures of few features lie where
        other classes are.
    repair : bool
        Train again, up to three times, where classes have collapsed or are swapped. Not if all
        confusion matrices have more than 2e8 cells.
    calibrate : bool
        Divide logits by the temperature at which held-out labels are most likely: a network that
        was stopped early is underconfident, and the posterior would trust the labels too much.
    refit : float
        Train a new network at last, with mixup, on the posterior of all items, for this multiple of
        the epochs; 0 trains none. It has not learned any wrong label that the posterior corrects,
        and its training holds out no items. The posterior stays that of the first network.
    """

    n_init: Count = 2
    mixup: NotNegative | Literal["auto"] = "auto"
    repair: bool = True
    calibrate: bool = True
    refit: NotNegative = 0.0

    def __post_init__(self) -> None:
        check_parameters(self)

    def fit(
        self, estimator: NetworkEstimator, data: CrowdData, settings: Settings
    ) -> tuple[Trained, float]:
        """Train an estimator; return the training that was kept and its temperature."""
        trials = self._trials(estimator)
        settings = _with_patience(settings, estimator.table_)
        best = estimator.train_trial(data, settings, trials[0])
        for trial in trials[1:]:
            trained = estimator.train_trial(data, settings, trial)
            best = min(best, trained, key=lambda each: each.rank)
        chooses = estimator.validation_fraction > 0 and estimator.warm_trial is None
        if self.mixup == "auto" and chooses:
            best = _choose_mixup(best, estimator, data, settings, number=len(trials))
        repairs = self.repair and estimator.repairs_classes and estimator.warm_trial is None
        if repairs and fits_array(estimator.table_):
            best = _repair(best, estimator, data, settings)
        estimator.use(best)
        calibrates = self.calibrate and estimator.validation_fraction > 0
        return best, _temperature(estimator, data) if calibrates else 1.0

    def _trials(self, estimator: NetworkEstimator) -> list[Trial]:
        mixup = MIXUPS[0] if self.mixup == "auto" else float(self.mixup)
        if estimator.warm_trial is not None:
            before = estimator.warm_trial
            return [before._replace(mixup=before.mixup if self.mixup == "auto" else mixup)]
        names, values = estimator.options().keys(), estimator.options().values()
        combinations = [dict(zip(names, each, strict=True)) for each in itertools.product(*values)]
        n_trials = max(self.n_init, len(combinations)) if estimator.validation_fraction else 1
        turns = itertools.islice(itertools.cycle(combinations), n_trials)
        return [Trial(params, mixup, number) for number, params in enumerate(turns)]


def _with_patience(settings: Settings, table: LabelTable) -> Settings:
    """Return settings that stop a training after some steps in vain, in whole epochs."""
    if settings.patience is not None or settings.schedule != "constant":
        return settings
    n_steps = max(int((table.labels_per_item() > 0).sum()) / settings.batch_size, 1)
    return replace(settings, patience=math.ceil(PATIENCE / n_steps))


def _significant(estimator: NetworkEstimator) -> float:
    return minimum_gain(estimator.validation_fraction * estimator.table_.n_labels)


def _choose_mixup(
    best: Trained, estimator: NetworkEstimator, data: CrowdData, settings: Settings, number: int
) -> Trained:
    """Train once more without mixup, and keep that if it is significantly better."""
    trial = best.trial._replace(mixup=MIXUPS[1], number=number)
    # It draws its own random numbers, so that what follows does not depend on it.
    with data.random.reseeded(settings.seed):
        without = estimator.train_trial(data, settings, trial)
    needed = best.is_swapped, best.loss - _significant(estimator)
    return without if without.rank < needed else best


def _repair(
    best: Trained, estimator: NetworkEstimator, data: CrowdData, settings: Settings
) -> Trained:
    """Train again where classes have collapsed or are swapped, from all else that was learned.

    A trace penalty that was strong enough to swap classes was too strong. A collapsed class is
    reinitialised as long as that explains held-out labels significantly better.
    """
    repair = _class_repair(best, estimator, data)
    for attempt in range(MAX_TRIALS):
        may_split = repair.splits and estimator.validation_fraction and not best.is_swapped
        split = repair.splits.pop(0) if may_split else None
        if split is None and not (repair.is_swapped or best.is_swapped):
            break
        start = Initialization(
            repair.initial_matrices(split, estimator.initial_matrices()),
            repair.initial_posterior(split),
        )
        params = dict(best.trial.params)
        if split is None and "lam" in params:
            params["lam"] = params["lam"] / 10
        trial = best.trial._replace(
            params=params, number=best.trial.number + 1 + attempt, start=start
        )
        trained = estimator.train_trial(data, settings, trial)
        gain = _significant(estimator) * (1 if split else -1)
        if trained.rank < (best.is_swapped, best.loss - gain):
            best, repair = trained, _class_repair(trained, estimator, data)
    return best


def _class_repair(trained: Trained, estimator: NetworkEstimator, data: CrowdData) -> ClassRepair:
    """Look for collapsed and swapped classes, with matrices counted from the posterior.

    Those of the training lag behind, and the penalty has lowered their diagonal.
    """
    estimator.use(trained)
    posterior = estimator.current_posterior(data)
    return ClassRepair(estimator.table_, posterior, _counted(estimator.table_, posterior))


def _temperature(estimator: NetworkEstimator, data: CrowdData) -> float:
    logits, model, table = (
        estimator.logits(data).cpu(),
        estimator.annotator_model_,
        estimator.table_,
    )
    held_out, gold = estimator.held_out_items(), estimator.gold_
    is_own = model is not None and model.n_annotators == table.n_annotators
    if model is not None and is_own and not fits_array(table):
        return held_out_temperature_of(model, table, gold, logits, held_out)
    if model is not None and is_own:
        matrices = model.matrices().cpu()
    else:
        matrices = torch.from_numpy(_counted(table, torch.softmax(logits.double(), 1).numpy()))
    return held_out_temperature(table, gold, logits, matrices, held_out)


def _counted(table: LabelTable, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    counts = torch.from_numpy(expected_counts(posterior, table))
    return matrices_from_counts(counts, 1 / table.n_classes).numpy()


def is_swapped(model: AnnotatorModel | None, table: LabelTable) -> bool:
    """Whether the classes of an annotator model fit the reports better in another order."""
    if model is None or model.n_annotators != table.n_annotators:
        return False
    return is_permuted(pooled_matrix(model, table.labels_per_annotator()))
