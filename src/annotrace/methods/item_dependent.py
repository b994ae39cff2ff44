"""Item-dependent errors: the future work that Tanno et al. (CVPR 2019) name.

Cross-fitted EM (`CrossFittedEM`) first learns networks and confusion matrices that are the same for
all items. Then an EM around the out-of-fold predictions looks for annotators who are able in one
region of feature space and fail in another (`annotrace.crowd.regional`). Held-out labels choose how
far errors may depend on the item, including not at all (`regional_em`): then everything is as after
`CrossFittedEM`, of the same random state.

Where an item is, is described by the principal components of its features; of texts, by the
out-of-fold log-probabilities of their classes.

Use it where people know one domain and not another, with some fifty labels per annotator or more,
and two labels per item or more. With one label per item the classifier's own errors in a region and
those of all annotators there look alike, and less is gained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.regional import RegionalAnnotators
from annotrace.data import ItemSource
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up
from annotrace.methods.cross_fitted_em import CrossFittedEM
from annotrace.methods.item_space import ItemSpace
from annotrace.methods.regional_em import Evidence, RegionalChoice, choose_strength
from annotrace.parameters import NotNegative
from annotrace.training import CrowdData, Epoch, Settings


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
        rows, space = self._fit_space(data)
        logits = torch.log(torch.from_numpy(self._oof_proba).clamp_min(1e-12))
        start = torch.from_numpy(self._posterior)
        evidence = Evidence(self.table_, self.gold_, logits, start, space(rows))
        choice = choose_strength(evidence, self.fold_)
        if choice is not None:
            self._set_dependence(choice)
            self._keep_regional(choice, space, data.device)
        return history

    def _set_dependence(self, choice: RegionalChoice | None) -> None:
        self.strength_ = None if choice is None else choice.strength
        self.gain_ = 0.0 if choice is None else choice.gain
        self.item_space_: ItemSpace | None = None

    def _fit_space(self, data: CrowdData) -> tuple[Tensor, ItemSpace]:
        """Return the rows that describe all items, and the space fitted to those with labels."""
        rows = self._describing_rows(data, torch.from_numpy(self._oof_proba).log())
        labelled = torch.from_numpy(self._labelled())
        return rows, ItemSpace(rows.shape[1]).fit(rows[labelled])

    def _describing_rows(self, data: CrowdData, log_p: Tensor) -> Tensor:
        """Return features as rows, or the log-probabilities of texts, (n_items, width)."""
        if self.input_kind_ == "text":
            return log_p.clamp_min(-20.0)

        def rows(item: Tensor) -> Tensor:
            inputs = data.inputs(item)
            assert isinstance(inputs, Tensor)
            return inputs.flatten(1).cpu().double()

        return data.map(rows)

    def _keep_regional(
        self, choice: RegionalChoice, space: ItemSpace, device: torch.device
    ) -> None:
        self.annotator_model_ = choice.fit.annotators.float().to(device)
        self.item_space_ = space.to(device)
        self._posterior = choice.posterior.double().numpy()
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
