"""What every fitted classifier does: predict, score, and be saved and restored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor, nn

from annotrace.aggregation.run_reader import SavedRun
from annotrace.aggregation.saving import SavableModel
from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.result import CrowdResult
from annotrace.data import EncoderRecord, ItemSource
from annotrace.data.augmentation import mirror
from annotrace.errors import InputError
from annotrace.estimators import check_fitted
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import check_names, plain_names
from annotrace.methods.inputs import Items, has_several_annotators, rows_to_predict
from annotrace.methods.new_labels import (
    known_annotators,
    mean_log_likelihood_of_new,
    posterior_of_new,
)
from annotrace.networks import Backbone, Bags, build_backbone
from annotrace.networks.text import texts_with_saved_codes
from annotrace.training import (
    CrowdData,
    Epoch,
    Inputs,
    Precision,
    Randomness,
    autocast,
    check_finite,
    pick_device,
)

SMALL = 2**18
"""Modules of this size are built at once when a run is read: the first use of the meta device
imports 800 modules of torch, which takes more than a second."""


class FittedClassifier(ClassifierMixin, BaseEstimator, SavableModel):  # type: ignore[misc]
    """A fitted classifier with its annotators, from which `CrowdEstimator` derives."""

    backbone: Backbone
    precision: Precision
    device: str
    average_flips: bool

    # What a method defines

    def _build_modules(self, device: torch.device) -> None:
        """Build the modules that the method learns beside the network."""
        self.annotator_model_: AnnotatorModel | None = None

    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""
        modules: dict[str, nn.Module] = {"network": self.network_}
        if self.annotator_model_ is not None:
            modules["annotators"] = self.annotator_model_
        return modules

    def _network_for(self, sample: Tensor | Bags) -> nn.Module:
        """Build a network for rows like those of a sample, (n_rows, ...)."""
        return build_backbone(self.backbone, sample, self._n_outputs())

    def _n_outputs(self) -> int:
        return self.table_.n_classes

    # Prediction

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return class probabilities, shape (n_rows, n_classes)."""
        check_fitted(self)
        source = rows_to_predict(self, X)
        device = next(self.network_.parameters()).device
        logits = self.logits(CrowdData.unlabelled(source, self.table_, device))
        probabilities: NDArray[Any] = torch.softmax(logits.cpu().double(), dim=1).numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, shape (n_rows,)."""
        probabilities = self.predict_proba(X)
        chosen: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return chosen

    def posterior(self, X: Any, y: Any, items: Items = None) -> NDArray[Any]:
        """Return class probabilities from classifier and labels, shape (n_rows, n_classes).

        Parameters
        ----------
        X, y, items
            As in `fit`, for new items. Annotators and classes are matched by name; an annotator
            unknown to the model has the pool's confusion matrix.
        """
        check_fitted(self)
        if self.annotator_model_ is None:
            raise InputError(
                f"{type(self).__name__} does not model annotators, so labels cannot be weighted: "
                "use `predict_proba`, or a method with `confusion_`."
            )
        return posterior_of_new(self, X, y, items)

    def annotators_for(self, source: ItemSource, table: LabelTable) -> AnnotatorModel:
        """Return the model of a table's annotators on new items, matched by name.

        Parameters
        ----------
        source : ItemSource
        table : LabelTable
            Item k is row k of the source.
        """
        return known_annotators(self, table)

    def score(self, X: Any, y: Any, sample_weight: Any = None, items: Items = None) -> float:
        """Return the accuracy on true classes, or the mean log-likelihood of labels.

        Which of the two depends on y alone. No truth is needed for the second; it is what
        scikit-learn's tools maximise if they are given labels.

        Parameters
        ----------
        X : array of shape (n_items, ...), frame, or ItemSource
        y : array of shape (n_items,), LabelTable, or array of shape (n_items, n_annotators)
            A vector is the true classes: the score is the accuracy of `predict`. Otherwise it is
            the mean over labels of log p(label | x, annotator), where the classifier's probability
            of each class is multiplied by the annotator's of reporting the label; annotators
            unknown to the model have the pool's matrix. A method that does not model annotators is
            scored by its probability of the reported class. A label of a class unknown to the model
            has the probability 1e-12.
        sample_weight : array-like of shape (n_items,), optional
            The weight of each row, and so of its labels.
        items : array-like of shape (n_items,), optional
            As in `fit`; a vector y is matched by position.
        """
        if not has_several_annotators(y):
            return float(super().score(X, y, sample_weight))
        check_fitted(self)
        return mean_log_likelihood_of_new(self, X, y, items, sample_weight)

    @property
    def items_(self) -> NDArray[Any]:
        """The item of each row of X in `fit`, shape (n_items,)."""
        return self.table_.items

    def logits(self, data: CrowdData) -> Tensor:
        """Return the logits of all items, shape (n_items, n_classes)."""
        self.network_.eval()
        logits = data.map(lambda item: self._class_scores(data.inputs(item)))
        return check_finite(logits.float())

    def _log_proba(self, data: CrowdData) -> Tensor:
        return torch.log_softmax(self.logits(data).cpu().double(), dim=1)

    def _class_scores(self, inputs: Inputs) -> Tensor:
        """Return the logits of rows (n_rows, ...), shape (n_rows, n_classes)."""
        with autocast(inputs.device, self.precision):
            return self._over_views(self.network_, inputs)

    def _over_views(self, function: Callable[[Inputs], Tensor], inputs: Inputs) -> Tensor:
        """Return a function of rows, its mean over images and mirror images if that is wanted."""
        if not self.average_flips or isinstance(inputs, Bags):
            return function(inputs)
        return (function(inputs) + function(mirror(inputs))) / 2

    # Saving

    def describe(self) -> dict[str, Any]:
        """Return a description of the fit for run.json, in plain types."""
        return {
            "kind": "classifier",
            "custom_backbone": isinstance(self.backbone, nn.Module),
            "input_kind": self.input_kind_,
            "input_shape": list(self.input_shape_),
            "named_rows": self.named_rows_,
            "feature_names": list(getattr(self, "feature_names_in_", [])),
            "encoder": None if self.encoder_ is None else self.encoder_.to_dict(),
            "history": [asdict(epoch) for epoch in self.history_],
        }

    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""
        described = run.description
        self.table_, self.gold_ = run.table, run.gold
        self.classes_ = plain_names(self.table_.classes)
        self.input_kind_ = described["input_kind"]
        self.input_shape_ = tuple(described["input_shape"])
        self.n_features_in_ = int(np.prod(self.input_shape_))
        self.named_rows_ = described["named_rows"]
        if described["feature_names"]:
            check_names(described["feature_names"], self.n_features_in_, "feature_names")
            self.feature_names_in_ = np.array(described["feature_names"], dtype=object)
        encoder = described["encoder"]
        self.encoder_ = None if encoder is None else EncoderRecord.from_dict(encoder)
        self.history_ = [Epoch(**epoch) for epoch in described["history"]]
        for name, value in run.attributes(self.saved_attributes).items():
            setattr(self, name, value)
        device = pick_device(self.device)
        # The run replaces the weights drawn here.
        with Randomness(0, device).initial_weights():
            self._build_as_in(run)
            self._build_modules(device)
        for name, module in self.learned_modules().items():
            module.load_state_dict(run.modules[name])
            module.to(device).eval()
        self._set_result(run.result(self.annotator_model_))

    def _build_as_in(self, run: SavedRun) -> None:
        """Build the network, and check that the tensors of a run are those of all modules.

        If the run claims to be large, nothing is allocated before that: tensors on the meta device
        have a shape and no memory.
        """
        place = torch.device("cpu" if self._claimed_size() <= SMALL else "meta")
        saved = run.modules.get("network", {})
        try:
            is_text = self.input_kind_ == "text"
            sample = texts_with_saved_codes(saved) if is_text else self._blank_rows(place)
            with place:
                self.network_ = self._network_for(sample)
                self._build_modules(place)
        except (RuntimeError, TypeError, OverflowError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"No network can be built from its parameters: {reason}") from None
        run.check_modules(self.learned_modules())
        if place.type == "meta" and not isinstance(self.backbone, nn.Module):
            self.network_.to_empty(device="cpu")

    def _blank_rows(self, device: torch.device) -> Tensor:
        return torch.zeros(2, *self.input_shape_, device=device)

    def _claimed_size(self) -> int:
        """Return about how large all modules are, up to a factor of the hidden layers' width."""
        n_outputs, n_classes = self._n_outputs(), self.table_.n_classes
        of_annotators = self.table_.n_annotators * n_classes * (n_classes + n_outputs)
        return self.n_features_in_ + n_outputs + of_annotators

    def _set_result(self, result: CrowdResult) -> None:
        self.result_, self.posterior_ = result, result.posterior
        if result.annotator_model is not None:
            self.set_confusion(result)
