"""What every method that learns truth and classifier together has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from annotrace.data import ItemSource
from annotrace.diagnosis.confidence import settled
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.gold import Gold, known_classes
from annotrace.labels.vocabulary import TEXT
from annotrace.methods.continuing import Before, feature_names, learned_before
from annotrace.methods.inputs import Items, match, rows_to_predict
from annotrace.methods.steps import Steps
from annotrace.models.backbones import Backbone
from annotrace.models.crowd_loss import HasColumns
from annotrace.parameters import (
    Count,
    NotNegative,
    Positive,
    ProperFraction,
    Seed,
    check_parameters,
)
from annotrace.training import (
    Callback,
    CrowdData,
    Epoch,
    Settings,
    Stages,
    pick_device,
    repeatable,
    seeded,
)
from annotrace.training.devices import Precision
from annotrace.training.settings import Schedule
from annotrace.undo import unchanged_unless_done


class _Learned:
    """What `fit` sets; apart from the parameters, which a dataclass would take these for."""

    classes_: NDArray[Any]
    input_shape_: tuple[int, ...]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    named_rows_: bool
    versions_: dict[str, str]


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdEstimator(_Learned, Steps, Diagnosed, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that learns from labels by many annotators.

    Parameters
    ----------
    backbone : str or nn.Module
        The network: "mlp", "linear", "cnn", "cnn-wide", "resnet9", "resnet50", a module of your
        own from a batch to logits, or "auto" for "mlp" on features and "cnn" on images. Your own
        begins with its weights in every training of a fit: restarts differ in the order of batches.
    protocol : {"default", "paper"}
        Where the settings below come from when they are None: the best that was measured, or
        those of the paper.
    epochs, batch_size, lr, weight_decay, schedule, patience : optional
        How the network is trained; see `annotrace.training.Settings`.
    validation : float
        The share of items whose labels are held out, to stop at the best epoch by their
        likelihood; no truth is needed. 0 holds out none and keeps the last epoch.
    select : {"likelihood", "labels", "truth"}
        What tells the best epoch: the likelihood of the held-out labels; how often the classifier
        agrees with them; or with the truth, if the table has it. The last two are for comparing
        with papers that choose so.
    precision : {"float32", "bf16", "fp16"}
    fast : bool
        Replay recorded steps on a GPU; see `annotrace.training.Settings`.
    device : str
        "auto", "cpu", "cuda", "cuda:1", "mps".
    random_state : int, Generator or None
        Two runs with the same integer are equal to the last bit on one machine; on a GPU too,
        unless a module of your own adds in any order there (`scatter_add_`, say).
    verbose : bool
        Show a progress bar.
    callbacks : sequence of callable
        Told of every `Epoch`; training stops when one returns True.
    checkpoint : path-like, optional
        A file that Ctrl-C leaves behind, and from which the same `fit` goes on. Methods that
        train several times write others beside it, with a number behind the name.
    warm_start : bool
        Let `fit` go on from what the last `fit` learned, as when labels were added: the network
        stays, annotators keep their matrices by name, and new ones begin with the pool's.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        confusion[annotator, true, reported], rows sum to one.
    posterior_ : ndarray of shape (n_items, n_classes)
        Truth of each row of X: classifier and labels combined.
    confidence_ : ndarray of shape (n_items,)
        How sure to be of the likeliest class: never above `posterior_`, as people err alike.
    annotators_ : frame
        annotator, n_labels, skill (mean diagonal), low and high (its 90 % interval), flags.
    confusion_low_, confusion_high_ : ndarray of shape (n_annotators, n_classes, n_classes)
        90 % intervals of the cells.
    diagnosis_ : Diagnosis
        Whether the labels show the truth, and what would help; ``print`` says it in words.
    table_ : LabelTable
        The labels, item k being row k of X.
    feature_names_in_ : ndarray of shape (n_features,)
        The columns of X, where it has names for them; others, or another order, are refused later.
    network_ : nn.Module
        From stored rows to logits.
    history_ : list of Epoch
    """

    backbone: Backbone = "auto"
    protocol: Literal["default", "paper"] = "default"
    epochs: Count | None = None
    batch_size: Count | None = None
    lr: Positive | None = None
    weight_decay: NotNegative | None = None
    schedule: Schedule | None = None
    patience: Count | None = None
    validation: ProperFraction = 0.1
    select: Literal["likelihood", "labels", "truth"] = "likelihood"
    precision: Precision = "float32"
    fast: bool = True
    device: str = "auto"
    random_state: Seed = None
    verbose: bool = False
    callbacks: Sequence[Callback] = ()
    checkpoint: str | PathLike[str] | None = None
    warm_start: bool = False

    method: ClassVar[str]

    def fit(self, X: Any, y: Any, items: Items = None, gold: Gold = None) -> CrowdEstimator:
        """Learn the classifier, and where the method has them, the annotators.

        Parameters
        ----------
        X : array of shape (n_items, ...), frame, or ItemSource
            Rows of features, or images (n, height, width[, channels]).
        y : LabelTable, array of shape (n_items,) or array of shape (n_items, n_annotators)
            A vector is one annotator's labels, every value a class. In an array of several
            annotators -1 (integers), NaN or None is missing.
        items : array-like of shape (n_items,), optional
            The item of each row of X; needed when the table has names and X has none.
        gold : mapping from item to class, or array-like of shape (n_items,), optional
            Classes that are known for certain, by name; in an array None, NaN or -1 is unknown.
        """
        self._fit_in_stages(X, y, items, gold).clear()
        return self

    def _fit_in_stages(self, X: Any, y: Any, items: Items = None, gold: Gold = None) -> Stages:
        """Do what `fit` does, and give the checkpoints, which are still there."""
        check_parameters(self)
        before = learned_before(self) if self.warm_start else None
        parts = () if before is None else before.parts.values()
        with unchanged_unless_done(self), _weights_unless_done(parts):
            source, table = match(self, X, y, items)
            known = known_classes(table, gold)
            _check_learnable(table)
            if before is not None:
                before.check(table, self.input_shape_, feature_names(self))
            stages = Stages(None if self.checkpoint is None else Path(self.checkpoint))
            self._fit_matched(source, table, known, stages, before)
        return stages

    def _fit_matched(
        self,
        source: ItemSource,
        table: LabelTable,
        gold: NDArray[np.int32],
        stages: Stages,
        before: Before | None = None,
    ) -> None:
        """Learn from items and labels whose rows match; `before` is what to go on from."""
        self.table_, self.gold_, self._stages = table, gold, stages
        self._set_classes()
        device, self._seed = pick_device(self.device), stages.seed(self.random_state)
        with seeded(self._seed, device), repeatable():
            data = CrowdData(source, table, device)
            # On the device once: a step that copies from the host cannot be replayed.
            known = torch.from_numpy(gold).long().to(device)
            self._known = known if bool((known >= 0).any()) else None
            if before is None:
                self.network_ = self._build_network(data).to(device)
            self._build_parts(device)
            if before is not None:
                self._go_on_from(before)
            self.history_ = self._learn(data, self._settings(self._seed))
            self.network_.eval()
            self._read_out(data)
        self.posterior_ = settled(self.posterior_, gold)

    @abstractmethod
    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Train `network_`; set whatever else the method learns."""

    def _build_parts(self, device: torch.device) -> None:
        """Make whatever a method learns beside the network, at its start."""

    def _go_on_from(self, before: Before) -> None:
        """Let what `_build_parts` made begin where an earlier fit ended."""

    def _parts(self) -> dict[str, nn.Module]:
        """Name all modules that a run must keep."""
        return {"network": self.network_}

    @abstractmethod
    def _columns(self) -> HasColumns | None:
        """Give what the method knows of annotators, if it models them."""

    # Prediction

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Give the probability of each class, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        source = rows_to_predict(self, X)
        return _probabilities(self._logits(_unlabelled(source, self.table_, self._device())))

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the most probable class of each row, shape (n_rows,)."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def posterior(self, X: Any, y: Any, items: Items = None) -> NDArray[Any]:
        """Give the probability of each class of new items, classifier and labels combined.

        Parameters
        ----------
        X, y, items
            As in `fit`. Annotators are matched by name; one whom the model does not know is
            taken for the pool.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        from annotrace.methods.combining import combine

        check_is_fitted(self)
        return combine(self, X, y, items)

    @property
    def items_(self) -> NDArray[Any]:
        """The item of each row of X in `fit`, shape (n_items,)."""
        return self.table_.items

    def save(self, folder: str | Path) -> None:
        """Write the run to a folder; `annotrace.load` reads it back."""
        from annotrace.methods.runs import save_run

        check_is_fitted(self)
        save_run(self, Path(folder))

    # Shared steps

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _set_classes(self) -> None:
        """Take the classes from the table, as scikit-learn's functions want text: fixed width."""
        names = self.table_.classes
        self.classes_ = np.array(names.tolist()) if names.dtype == TEXT else np.asarray(names)


@contextmanager
def _weights_unless_done(parts: Collection[nn.Module]) -> Iterator[None]:
    """Give modules the weights back that they had, where what is done to them does not end."""
    before = [deepcopy(part.state_dict()) for part in parts]
    try:
        yield
    except BaseException:
        for part, weights in zip(parts, before, strict=True):
            part.load_state_dict(weights)
            part.eval()
        raise


def _check_learnable(table: LabelTable) -> None:
    if table.n_classes < 2:
        raise InputError("The labels have one class only, and there is nothing to learn.")
    if table.n_labels == 0:
        raise InputError("The table has no labels, and there is nothing to learn.")


def _probabilities(logits: Tensor) -> NDArray[Any]:
    probabilities: NDArray[Any] = torch.softmax(logits.cpu().double(), dim=1).numpy()
    return probabilities


def _unlabelled(source: ItemSource, table: LabelTable, device: torch.device) -> CrowdData:
    nothing = np.empty(0, np.int32)
    empty = LabelTable.from_codes(
        nothing,
        nothing,
        nothing,
        n_items=len(source),
        n_annotators=table.n_annotators,
        n_classes=table.n_classes,
    )
    return CrowdData(source, empty, device)
