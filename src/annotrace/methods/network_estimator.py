"""Methods that train a network by gradient descent, plainly or with the recipe."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.aggregation.em_model import one_coin_matrices
from annotrace.crowd.losses import label_log_likelihood
from annotrace.crowd.result import CrowdResult
from annotrace.errors import InputError, count
from annotrace.labels.codes import split_positions
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.distillation import distillation_loss
from annotrace.methods.protocols import PROTOCOLS
from annotrace.methods.recipe import Initialization, Recipe, Trained, Trial, is_swapped
from annotrace.methods.warm_start import Previous
from annotrace.parameters import Count, Positive
from annotrace.training import (
    Batch,
    CrowdData,
    Epoch,
    Settings,
    autocast,
    draw_mixture,
    join_histories,
    mixed_logits,
)

CERTAIN = 30.0
"""The logit of a gold class: all others have e^-30 of its probability."""

TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Held-out labels are scored at the best of these: mixup leaves a network underconfident, and
without it a network is overconfident, which says nothing about its choice of classes."""


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEstimator(CrowdEstimator):
    """A method that trains a network by gradient descent.

    Parameters
    ----------
    protocol : {"default", "paper"}
        Where the settings below come from when they are None: the best that was measured, or
        those of the paper.
    patience : int, optional
        Stop after this many epochs without a better held-out score. By default a `Recipe` stops
        after as many epochs as have 1,500 steps, and a plain training goes on to the last epoch.
    select : {"likelihood", "labels", "truth"}
        What selects the best epoch: the likelihood of the held-out labels; the agreement of the
        classifier with them; or with the truth, if the table has it. The last two are for comparing
        with papers that select so.
    recipe : Recipe, "default", "none", optional
        Train with `Recipe`: several initialisations, mixup, repair of classes, temperature. By
        default `TraceRegularized` does, unless its protocol is the paper's, and others do not.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    chosen_ : dict
        The values of parameters that were "auto", mixup, and the number of the initialisation.
    temperature_ : float
        What the logits of `network_` are divided by.
    """

    protocol: Literal["default", "paper"] = "default"
    patience: Count | None = None
    select: Literal["likelihood", "labels", "truth"] = "likelihood"
    recipe: Recipe | Literal["default", "none"] | None = None

    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **CrowdEstimator.saved_attributes,
        "temperature_": Positive,
        "chosen_": dict[str, str | float | bool | None],
    }
    recipe_by_default: ClassVar[bool] = False
    repairs_classes: ClassVar[bool] = False

    # What a method defines

    @abstractmethod
    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Train `network_` and whatever else the method learns."""

    def options(self) -> dict[str, Sequence[Any]]:
        """Return the options of each parameter that is "auto"."""
        return {}

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return the loss of a batch given the network's logits, shape ()."""
        raise NotImplementedError

    def _score(self, batch: Batch, logits: Tensor) -> tuple[Tensor, int]:
        """Return the summed loss of held-out labels, shape (), and the number of its terms."""
        assert self.annotator_model_ is not None
        labels = (batch.row, batch.annotator, batch.label, batch.item)
        log_likelihood = label_log_likelihood(logits, self.annotator_model_, *labels)
        return -log_likelihood.sum(), len(batch.label)

    # Training, plainly or with the recipe

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        # On the device once: a step that copies from the host cannot be recorded.
        gold = torch.from_numpy(self.gold_).long().to(data.device)
        self._gold = gold if bool((gold >= 0).any()) else None
        self.temperature_ = 1.0
        self._options = self.options()
        self._first_result: CrowdResult | None = None
        recipe = self._recipe()
        if recipe is None:
            first = {name: options[0] for name, options in self.options().items()}
            start = None if self.warm_trial is None else self.warm_trial.start
            kept = self.train_trial(data, settings, Trial(first, start=start))
        else:
            kept, self.temperature_ = recipe.fit(self, data, settings)
        history = kept.history
        if recipe is not None and recipe.refit:
            history = join_histories(history, self._refit(data, settings, recipe.refit))
        self._warm_trial: Trial | None = None
        self.chosen_ = {**kept.trial.params, "mixup": kept.trial.mixup, "init": kept.trial.number}
        return history

    def _refit(self, data: CrowdData, settings: Settings, longer: float) -> list[Epoch]:
        """Train a new network on the posterior of all items, and keep that posterior."""
        self._first_result = self._make_result(data)
        posterior = torch.from_numpy(self._first_result.posterior)
        self.network_, self.temperature_ = self._build_network(data), 1.0
        loss = distillation_loss(self.network_, posterior, 1.0, data)
        epochs = max(1, round(longer * settings.epochs))
        part = replace(settings, epochs=epochs, patience=None, seed=settings.seed + 7919)
        return self._run(self.network_, loss, data, self._labelled(), part)

    def _make_result(self, data: CrowdData) -> CrowdResult:
        first = getattr(self, "_first_result", None)
        return super()._make_result(data) if first is None else first

    def _recipe(self) -> Recipe | None:
        if self.recipe == "none":
            return None
        if self.recipe is None:
            return PROTOCOLS[self.protocol].recipe if self.recipe_by_default else None
        return Recipe() if self.recipe == "default" else self.recipe

    @property
    def warm_trial(self) -> Trial | None:
        """The trial that continues a previous fit, if there is one."""
        return getattr(self, "_warm_trial", None)

    def _initialize_from(self, previous: Previous) -> None:
        chosen, options = getattr(self, "chosen_", {}), self.options()
        before = getattr(self, "_options", options)
        # What was chosen stays, unless the user has set the parameter since.
        params = {
            name: chosen.get(name, values[0]) if before.get(name) == values else values[0]
            for name, values in options.items()
        }
        matrices = None if previous.confusion is None else previous.matrices(self.table_)
        start = None if matrices is None else Initialization(matrices)
        self._warm_trial = Trial(params, chosen.get("mixup", 1.0), start=start)

    def train_trial(self, data: CrowdData, settings: Settings, trial: Trial) -> Trained:
        """Train once: the network that is there for the first trial, a new one for others."""
        if trial.number:
            self.network_ = self._build_network(data)
            if isinstance(self.backbone, nn.Module):
                # It starts with its own weights every time: another order makes the difference.
                settings = replace(settings, seed=settings.seed + 7919 * trial.number)
        history = self.train_once(data, settings, trial)
        swapped = is_swapped(self.annotator_model_, self.table_)
        return Trained(trial, self.__dict__.copy(), history, swapped)

    def use(self, trained: Trained) -> None:
        """Take over what a training has learned."""
        self.__dict__.update(trained.learned)

    def current_posterior(self, data: CrowdData) -> NDArray[np.float64]:
        """Return the posterior of the modules in use, shape (n_items, n_classes)."""
        posterior: NDArray[np.float64] = self._make_result(data).posterior
        return posterior

    def initial_matrices(self) -> NDArray[np.float64]:
        """Return the matrices that a training starts from."""
        diagonal = PROTOCOLS["default"].diagonal or 0.7
        skill = torch.full((self.table_.n_annotators,), diagonal, dtype=torch.float64)
        return one_coin_matrices(skill, self.table_.n_classes).numpy()

    def held_out_items(self) -> NDArray[np.intp]:
        """Return the labelled items that are held out by every training of the fit."""
        return self._split()[1]

    # Steps that methods share

    def _or_protocol(self, name: str) -> Any:
        """Return a parameter, or the protocol's value where it is None."""
        given = getattr(self, name)
        return given if given is not None else getattr(PROTOCOLS[self.protocol], name)

    def _split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Split the labelled items into those to learn from and those held out."""
        labelled = self._labelled()
        rest, held_out = split_positions(len(labelled), self.validation_fraction, self._seed)
        if len(rest) == 0:
            raise InputError(
                f"Expected `validation_fraction` to leave items to learn from, but "
                f"{self.validation_fraction:g} of {count(len(labelled), 'labelled item')} leaves "
                "none: use 0, or label more items."
            )
        return labelled[rest], labelled[held_out]

    def _train(
        self,
        learned: nn.Module,
        objective: Callable[[Batch], Tensor],
        data: CrowdData,
        settings: Settings,
        score: Callable[[Batch], tuple[Tensor, int]] | None = None,
    ) -> list[Epoch]:
        """Train on the labelled items except those held out, by which epochs are scored.

        `score` returns the sum of a loss over a batch, or several sums of which the lowest counts,
        and the number of its terms.
        """
        rest, held_out = self._split()
        items = torch.from_numpy(held_out).to(data.device)
        score = self._selection_score(data) if score is None else score

        @torch.no_grad()
        def held_out_loss() -> float:
            part = items[data.processes.part(len(items))]
            with autocast(data.device, settings.precision):
                scores = [score(batch) for batch in data.batches(part)]
            total = torch.stack([total for total, _ in scores]).sum(0)
            n_terms = torch.tensor(sum(n for _, n in scores), dtype=torch.float64)
            # Too few items to divide are scored by every process, which the ratio does not show.
            total, n_terms = data.processes.add_up(total), data.processes.add_up(n_terms)
            return float(total.min()) / max(float(n_terms), 1)

        scored = held_out_loss if len(items) else None
        return self._run(learned, objective, data, rest, settings, scored)

    def _objective(self, data: CrowdData, mixup: float) -> Callable[[Batch], Tensor]:
        """Return the training loss of a batch, of mixtures of two items if `mixup` is not 0."""

        def plain_loss(batch: Batch) -> Tensor:
            own = data.share(batch)
            return self._loss(own, self.network_(own.inputs))

        def mixed_loss(batch: Batch) -> Tensor:
            # Every process draws the same mixture of the whole batch.
            mixture = draw_mixture(mixup, torch.zeros_like(batch.item), data.random.generator)
            rows, _ = data.processes.rows(len(batch.item))
            logits = mixed_logits(self.network_, batch.inputs, mixture, rows)
            own, other = data.share(batch), data.share(mixture.partners(batch))
            return torch.lerp(self._loss(other, logits), self._loss(own, logits), mixture.weight)

        return mixed_loss if mixup else plain_loss

    def _selection_score(self, data: CrowdData) -> Callable[[Batch], tuple[Tensor, int]]:
        """Return the loss by which the best epoch is selected."""
        if self.select == "likelihood":
            return self._best_score
        if self.select == "labels":
            return lambda batch: _errors(self._class_scores(batch.inputs)[batch.row], batch.label)
        if self.table_.truth is None or (self.table_.truth < 0).any():
            raise InputError("`select='truth'` needs a table with the truth of every item.")
        truth = torch.from_numpy(self.table_.truth.copy()).to(data.device)
        return lambda batch: _errors(self._class_scores(batch.inputs), truth[batch.item])

    def _best_score(self, batch: Batch) -> tuple[Tensor, int]:
        logits = self._class_scores(batch.inputs)
        if self._recipe() is None and not self.recipe_by_default:
            return self._score(batch, logits)
        scores = [self._score(batch, logits / temperature) for temperature in TEMPERATURES]
        return torch.stack([total for total, _ in scores]), scores[0][1]

    def _with_gold(
        self, batch: Batch, logits: Tensor, label_loss: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the loss of a batch's labels plus the cross-entropy of its gold items.

        Logits are certain for gold items, so that annotators are judged by what is known. The
        cross-entropy is divided by the number of rows.
        """
        if self._gold is None:
            return label_loss(logits)
        gold = self._gold[batch.item]
        loss = F.cross_entropy(logits.float(), gold, ignore_index=-1, reduction="sum")
        certain = CERTAIN * F.one_hot(gold.clamp_min(0), logits.shape[1]).to(logits.dtype)
        given = torch.where(gold[:, None] >= 0, certain, logits)
        return label_loss(given) + loss / len(batch.item)

    def logits(self, data: CrowdData) -> Tensor:
        """Return the calibrated logits of all items, shape (n_items, n_classes)."""
        return super().logits(data) / self.temperature_


def _errors(scores: Tensor, label: Tensor) -> tuple[Tensor, int]:
    return (scores.argmax(1) != label).sum(), len(label)
