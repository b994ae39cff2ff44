"""What every method that learns truth and classifier together has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from annotrace.data import ItemSource
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.codes import split_positions
from annotrace.labels.vocabulary import TEXT
from annotrace.methods.inputs import Items, match, rows_to_predict
from annotrace.methods.protocols import PROTOCOLS, Protocol
from annotrace.models import build_backbone, label_log_likelihood, posterior
from annotrace.models.backbones import Backbone
from annotrace.models.crowd_loss import HasColumns
from annotrace.training import (
    Batch,
    Callback,
    CrowdData,
    Epoch,
    Settings,
    autocast,
    pick_device,
    seed_of,
    seeded,
    train,
)
from annotrace.training.fingerprint import fingerprint

SAMPLE = 10_000
PREDICT_BATCH = 1024


class _Learned:
    """What `fit` sets; apart from the parameters, which a dataclass would take these for."""

    table_: LabelTable
    classes_: NDArray[Any]
    network_: nn.Module
    confusion_: NDArray[Any]
    posterior_: NDArray[Any]
    history_: list[Epoch]
    input_shape_: tuple[int, ...]
    n_features_in_: int
    named_rows_: bool


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdEstimator(_Learned, Diagnosed, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that learns from labels by many annotators.

    Parameters
    ----------
    backbone : str or nn.Module
        The network: "mlp", "linear", "cnn", "cnn-wide", "resnet9", "resnet50", a module of your
        own from a batch to logits, or "auto" for "mlp" on features and "cnn" on images.
    protocol : {"default", "paper"}
        Where the settings below come from when they are None: the best that was measured, or
        those of the paper.
    epochs, batch_size, lr, weight_decay, schedule, patience : optional
        How the network is trained; see `annotrace.training.Settings`.
    validation : float
        The share of items whose labels are held out, to stop at the best epoch by their
        likelihood; no truth is needed. 0 holds out none and keeps the last epoch.
    precision : {"float32", "bf16", "fp16"}
    device : str
        "auto", "cpu", "cuda", "cuda:1", "mps".
    random_state : int, Generator or None
        Two runs with the same integer are equal to the last bit.
    verbose : bool
        Show a progress bar.
    callbacks : sequence of callable
        Told of every `Epoch`; training stops when one returns True.
    checkpoint : str or Path, optional
        A file that Ctrl-C leaves behind, and from which the same `fit` goes on. Methods that
        train in several steps (`resumable` is False) leave none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        confusion[annotator, true, reported], rows sum to one.
    posterior_ : ndarray of shape (n_items, n_classes)
        Truth of each row of X: classifier and labels combined.
    annotators_ : polars frame
        annotator, n_labels, skill (mean diagonal), low and high (its 90 % interval), flags.
    confusion_low_, confusion_high_ : ndarray of shape (n_annotators, n_classes, n_classes)
        90 % intervals of the cells.
    diagnosis_ : Diagnosis
        Whether the labels show the truth, and what would help; ``print`` says it in words.
    table_ : LabelTable
        The labels, item k being row k of X.
    network_ : nn.Module
        From stored rows to logits.
    history_ : list of Epoch
    """

    backbone: Backbone = "auto"
    protocol: str = "default"
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    weight_decay: float | None = None
    schedule: str | None = None
    patience: int | None = None
    validation: float = 0.1
    precision: str = "float32"
    device: str = "auto"
    random_state: Any = None
    verbose: bool = False
    callbacks: Sequence[Callback] = ()
    checkpoint: str | Path | None = None

    method: ClassVar[str]
    resumable: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, items: Items = None) -> CrowdEstimator:
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
        """
        source, self.table_ = match(self, X, y, items)
        self._set_classes()
        _check_learnable(self.table_)
        device, seed = pick_device(self.device), seed_of(self.random_state)
        with seeded(seed, device):
            data = CrowdData(source, self.table_, device)
            self.network_ = self._build_network(data).to(device)
            self._build_parts(device)
            self.history_ = self._learn(data, self._settings(seed))
        self.network_.eval()
        self._read_out(data)
        return self

    @abstractmethod
    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Train `network_`; set whatever else the method learns."""

    def _build_parts(self, device: torch.device) -> None:
        """Make whatever a method learns beside the network, at its start."""

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

    def _protocol(self) -> Protocol:
        if self.protocol not in PROTOCOLS:
            raise InputError(
                f"Expected `protocol` to be one of {', '.join(map(repr, PROTOCOLS))}, "
                f"but got {self.protocol!r}."
            )
        return PROTOCOLS[self.protocol]

    def _or_protocol(self, name: str) -> Any:
        """Give a parameter as the caller gave it, or else as the protocol has it."""
        given = getattr(self, name)
        return given if given is not None else getattr(self._protocol(), name)

    def _settings(self, seed: int) -> Settings:
        given = {
            name: getattr(self, name)
            for name in ("epochs", "batch_size", "lr", "weight_decay", "schedule", "patience")
            if getattr(self, name) is not None
        }
        return Settings(
            **(self._protocol().training | given | {"precision": self.precision, "seed": seed})
        )

    def _build_network(self, data: CrowdData) -> nn.Module:
        some = np.linspace(0, len(data.source) - 1, min(SAMPLE, len(data.source))).astype(np.int64)
        sample = data.inputs(torch.from_numpy(some).to(data.device)).cpu()
        return build_backbone(self.backbone, sample, self._n_outputs())

    def _n_outputs(self) -> int:
        """Give the number of outputs of the network."""
        return self.table_.n_classes

    def _train(
        self,
        learned: nn.Module,
        objective: Callable[[Batch], Tensor],
        score: Callable[[Batch], tuple[Tensor, int]],
        data: CrowdData,
        settings: Settings,
    ) -> list[Epoch]:
        """Train on the labelled items, but for a part that `score` judges.

        `score` gives the sum of a loss over a batch and the number of terms in it.
        """
        labelled = np.flatnonzero(self.table_.labels_per_item())
        rest, held_out = split_positions(len(labelled), self.validation, settings.seed)
        judged = torch.from_numpy(labelled[held_out]).to(data.device)

        @torch.no_grad()
        def held_out_loss() -> float:
            scores = [score(batch) for batch in data.batches(judged, PREDICT_BATCH)]
            return sum(float(total) for total, _ in scores) / sum(n for _, n in scores)

        keep = self.checkpoint is not None and self.resumable
        checkpoint = Path(self.checkpoint or "") if keep else None
        return train(
            learned,
            objective,
            data,
            torch.from_numpy(labelled[rest]).to(data.device),
            settings,
            score=held_out_loss if len(judged) else None,
            callbacks=self.callbacks,
            verbose=self.verbose,
            checkpoint=checkpoint,
            fingerprint="" if checkpoint is None else fingerprint(self, settings, self.table_),
        )

    def _label_loss(self, batch: Batch) -> tuple[Tensor, int]:
        """Sum the negative log-likelihood of a batch's labels, and count them."""
        columns = self._columns()
        assert columns is not None
        logits = self.network_(batch.inputs)
        return -label_log_likelihood(
            logits, columns, batch.row, batch.annotator, batch.label
        ).sum(), len(batch.label)

    @torch.no_grad()
    def _read_out(self, data: CrowdData) -> None:
        columns = self._columns()
        log_p = torch.log_softmax(self._logits(data).double(), dim=1)
        if columns is None:
            self.posterior_ = log_p.exp().cpu().numpy()
            return
        everything = torch.arange(len(data.source), device=data.device)
        batch_parts = []
        for item in everything.split(PREDICT_BATCH):
            row, annotator, label = data.labels(item)
            log_columns = columns.log_columns(annotator, label).double()
            batch_parts.append(posterior(log_p[item], log_columns, row))
        self.posterior_ = torch.cat(batch_parts).cpu().numpy()

    @torch.no_grad()
    def _logits(self, data: CrowdData) -> Tensor:
        everything = torch.arange(len(data.source), device=data.device)
        self.network_.eval()
        with autocast(data.device, self.precision):  # type: ignore[arg-type]
            parts = [self.network_(data.inputs(item)) for item in everything.split(PREDICT_BATCH)]
        return torch.cat(parts).float() if parts else torch.empty(0, len(self.classes_))

    def _device(self) -> torch.device:
        return next(self.network_.parameters()).device


def _check_learnable(table: LabelTable) -> None:
    if table.n_classes < 2:
        raise InputError("The labels have one class only, and there is nothing to learn.")
    if table.n_labels == 0:
        raise InputError("The table has no labels, and there is nothing to learn.")


def _probabilities(logits: Tensor) -> NDArray[Any]:
    probabilities: NDArray[Any] = torch.softmax(logits.double(), dim=1).cpu().numpy()
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
