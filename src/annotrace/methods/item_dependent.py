"""Item-dependent errors: the future work that Tanno et al. (CVPR 2019) name.

Cross-fitted EM (`CrossFittedEM`) first learns networks and confusion matrices that are the same for
all items. Then annotators may be able in one region of feature space and fail in another
(`annotrace.crowd.regional`)::

    1. choose how far errors depend on the item by the labels of held-out items (`regional_em`);
       if they do not, everything is as after `CrossFittedEM`, of the same random state
    2. repeat as often as `CrossFittedEM` has iterated:
           train new networks, out of fold, on the posterior that depends on the item
           find annotators and posterior by EM, given the predictions of all new networks

Where an item is, is described by the principal components of its features and their distance from
the mean; of texts, by the out-of-fold log-probabilities of their classes (`item_space`).

Use it where people know one domain and not another, with some fifty labels per annotator or more,
and two labels per item or more. With one label per item the classifier's own errors in a region and
those of all annotators there look alike, and less is gained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.em import clamp_posterior
from annotrace.crowd.regional import RegionalAnnotators
from annotrace.data import ItemSource
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up
from annotrace.methods.cross_fitted_em import CrossFittedEM
from annotrace.methods.fold_networks import Round
from annotrace.methods.item_space import ItemSpace
from annotrace.methods.regional_em import (
    Evidence,
    RegionalChoice,
    RegionalFit,
    choose_strength,
    fit_regional,
    held_out_fit,
)
from annotrace.methods.search import Candidate
from annotrace.parameters import NotNegative
from annotrace.training import CrowdData, Epoch, Settings, join_histories

SEED_STEP = 104_729
"""Between the seeds of iterations; another than that of `CrossFittedEM`."""


@dataclass(kw_only=True, eq=False, repr=False)
class ItemDependentEM(CrossFittedEM):
    """Cross-fitted EM, and annotators whose errors depend on the item if their labels show it.

    Parameters
    ----------
    **all
        See `CrossFittedEM`.

    Attributes
    ----------
    strength_ : float or None
        Of the penalty on the dependence on items, None if it is infinite: errors do not depend on
        the item, and all else is that of `CrossFittedEM`.
    gain_ : float
        How much the dependence lowers the negative log-likelihood per held-out label; 0 without it.
    item_space_ : ItemSpace or None
        From features to the coordinates that errors depend on; None without dependence.

    Notes
    -----
    With gold items, a dependence that is found replaces their choice between candidates
    (`gold_candidates_`). `confusion_` and skills are averages over items; `posterior` of new items
    uses their features, `score` the averages. `annotrace.diagnosis.failing_regions` lists where
    annotators fail.

    Examples
    --------
    >>> from annotrace.simulate import (
    ...     failing_regions, gaussian_features, hammer_spammers, simulate_regional_labels)
    >>> truth = np.arange(600) % 3
    >>> X = gaussian_features(truth, 3, accuracy=0.8, random_state=0)
    >>> able, guesses = (hammer_spammers(5, 3, skill, random_state=0) for skill in (0.9, 0.0))
    >>> regions = failing_regions(X, 5, random_state=0)
    >>> table = simulate_regional_labels(
    ...     truth, able, guesses, regions, labels_per_item=3, random_state=0)
    >>> model = ItemDependentEM(init="votes", epochs=10, random_state=0).fit(X, table)
    >>> inside, outside = (np.flatnonzero(part) for part in (regions[0], ~regions[0]))
    >>> accuracy = [
    ...     model.annotator_model_.matrices(items=torch.from_numpy(part))[0].diagonal().mean()
    ...     for part in (inside, outside)]
    >>> bool(accuracy[0] < accuracy[1] - 0.3)
    True
    """

    method: ClassVar[str] = "item-dependent"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **CrossFittedEM.saved_attributes,
        "strength_": NotNegative | None,
        "gain_": NotNegative,
    }

    def _learn_on_folds(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self._set_dependence(None)
        history = super()._learn_on_folds(data, settings)
        evidence, _ = self._gather(data)
        choice = choose_strength(evidence, self.fold_)
        if choice is None:
            return history
        self._set_dependence(choice)
        self._posterior = choice.posterior.double().numpy()
        rounds = self._iterate_regional(data, settings, choice.strength)
        return join_histories(history, *(each.history for each in rounds))

    def _iterate_regional(
        self, data: CrowdData, settings: Settings, strength: float
    ) -> list[Round]:
        """Train networks on the posterior and run the EM in turn, as often as before."""
        rounds: list[Round] = []
        n_rounds = self.n_rounds_
        self._expect_trainings(n_rounds)
        while len(rounds) < n_rounds and (not rounds or self._has_time()):
            rounds.append(self._learn_posterior(data, settings, len(rounds)))
            self._calibrate(data, self._average(rounds), strength)
            evidence, space = self._gather(data)
            held_out = held_out_fit(evidence, self.fold_, strength)
            self._posterior = held_out.posterior.double().numpy()
        self._keep_regional(fit_regional(evidence, strength), space, data.device)
        return rounds

    def _learn_posterior(self, data: CrowdData, settings: Settings, number: int) -> Round:
        """Train new networks, each on the posterior of the items outside its fold."""
        seed = settings.seed + SEED_STEP * (number + 1)
        part = replace(settings, epochs=self.epochs_, seed=seed)
        loss = self._posterior_loss(data, torch.from_numpy(self._posterior))
        return self._train_networks(data, Candidate(**self.chosen_), part, loss, None)

    def _calibrate(self, data: CrowdData, logits: Tensor, strength: float) -> None:
        """Set the temperature of new networks, and their out-of-fold predictions."""
        evidence = self._gather(data)[0]._replace(logits=logits)
        self.temperature_ = fit_regional(evidence, strength).temperature
        self._networks.temperature.fill_(self.temperature_)
        proba = torch.softmax(logits / self.temperature_, 1).numpy()
        self._oof_proba = clamp_posterior(proba, self.gold_)

    def _set_dependence(self, choice: RegionalChoice | None) -> None:
        self.strength_ = None if choice is None else choice.strength
        self.gain_ = 0.0 if choice is None else choice.gain
        self.item_space_: ItemSpace | None = None

    def _gather(self, data: CrowdData) -> tuple[Evidence, ItemSpace]:
        """Return all that EM takes, and the space of items, fitted to those with labels."""
        logits = torch.from_numpy(self._oof_proba).clamp_min(1e-12).log()
        rows = self._describing_rows(data, logits)
        space = ItemSpace(rows.shape[1]).fit(rows[torch.from_numpy(self._labelled())])
        start = torch.from_numpy(self._posterior)
        return Evidence(self.table_, self.gold_, logits, start, space(rows)), space

    def _describing_rows(self, data: CrowdData, log_p: Tensor) -> Tensor:
        """Return features as rows, or the log-probabilities of texts, (n_items, width)."""
        if self.input_kind_ == "text":
            return log_p.clamp_min(-20.0)

        def rows(item: Tensor) -> Tensor:
            inputs = data.inputs(item)
            assert isinstance(inputs, Tensor)
            return inputs.flatten(1).cpu().double()

        return data.map(rows)

    def _keep_regional(self, fit: RegionalFit, space: ItemSpace, device: torch.device) -> None:
        self.annotator_model_ = fit.annotators.float().to(device)
        self.item_space_ = space.to(device)
        self._held_out, self.gold_candidates_ = None, []

    def annotators_for(self, source: ItemSource, table: LabelTable) -> AnnotatorModel:
        """Return the model of a table's annotators on new items, matched by name.

        Annotators who are not known have the pool's matrix, whatever the item.
        """
        if self.item_space_ is None:
            return super().annotators_for(source, table)
        data = CrowdData.unlabelled(source, self.table_, next(self.network_.parameters()).device)
        items = self.item_space_(self._describing_rows(data, self._log_proba(data)))
        assert isinstance(self.annotator_model_, RegionalAnnotators)
        known, pool = self.annotator_model_, super().annotators_for(source, table).matrices()
        place = torch.from_numpy(look_up(table.annotators, self.table_.annotators))
        is_known, chosen = (place >= 0)[:, None, None], place.clamp_min(0)
        able, failing = (
            torch.where(is_known, log.cpu().double().exp()[chosen], pool)
            for log in (known.log_able, known.log_failing)
        )
        return RegionalAnnotators(able, failing, known.gates.cpu().double()[chosen], items)

    # Saving

    def _build_modules(self, device: torch.device) -> None:
        super()._build_modules(device)
        if getattr(self, "strength_", None) is None:
            self.item_space_ = None
            return
        width = self.table_.n_classes
        if self.input_kind_ != "text":
            width = int(np.prod(self.input_shape_))
        self.item_space_ = ItemSpace(width).to(device)
        sizes = self.table_.n_annotators, self.table_.n_classes, self.table_.n_items
        model = RegionalAnnotators.uniform(*sizes, self.item_space_.n_dims)
        self.annotator_model_ = model.to(device)

    def learned_modules(self) -> dict[str, torch.nn.Module]:
        """Return by name all modules that a saved run must hold."""
        modules = super().learned_modules()
        if self.item_space_ is not None:
            modules["item_space"] = self.item_space_
        return modules
