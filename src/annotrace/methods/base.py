"""What every method that learns truth and classifier together has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from annotrace.data import ItemSource
from annotrace.diagnosis import calibrated_confidence, skills
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.codes import split_positions
from annotrace.labels.vocabulary import TEXT
from annotrace.methods.continuing import Before, learned_before
from annotrace.methods.inputs import Gold, Items, known_classes, match, rows_to_predict
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
    Stages,
    autocast,
    pick_device,
    repeatable,
    seed_of,
    seeded,
    train,
)
from annotrace.training.fingerprint import fingerprint

SAMPLE = 10_000
PREDICT_BATCH = 1024
CERTAIN = 30.0
"""The logit of a class that is known: all others have e^-30 of its probability."""


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
    gold_: NDArray[np.int32]


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdEstimator(_Learned, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
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
    checkpoint : str or Path, optional
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
    annotators_ : polars frame
        annotator, n_labels, skill (mean diagonal).
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
    fast: bool = True
    device: str = "auto"
    random_state: Any = None
    verbose: bool = False
    callbacks: Sequence[Callback] = ()
    checkpoint: str | Path | None = None
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
        before = learned_before(self) if self.warm_start else None
        source, table = match(self, X, y, items)
        stages = Stages(None if self.checkpoint is None else Path(self.checkpoint))
        self._fit_matched(source, table, known_classes(table, gold), stages, before)
        stages.clear()
        return self

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
        _check_learnable(table)
        device, seed = pick_device(self.device), seed_of(self.random_state)
        with seeded(seed, device), repeatable():
            data = CrowdData(source, table, device)
            if before is None:
                self.network_ = self._build_network(data).to(device)
            else:
                before.check(self)
            self._build_parts(device)
            if before is not None:
                self._go_on_from(before)
            self.history_ = self._learn(data, self._settings(seed))
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
    def confidence_(self) -> NDArray[Any]:
        """How sure to be of the likeliest class of each item, shape (n_items,).

        Lower than `posterior_` has it, which takes mistakes for independent; see
        `annotrace.diagnosis.confidence`.
        """
        check_is_fitted(self)
        if not hasattr(self, "confusion_"):
            return self.posterior_.max(axis=1)
        confident = calibrated_confidence(self.table_, self.posterior_, self.confusion_)
        return np.where(self.gold_ >= 0, 1.0, confident)

    @property
    def annotators_(self) -> Any:
        """What is known of each annotator: a polars frame."""
        import polars as pl

        check_is_fitted(self)
        columns: dict[str, Any] = {
            "annotator": self.table_.annotators.tolist(),
            "n_labels": self.table_.labels_per_annotator(),
        }
        if hasattr(self, "confusion_"):
            columns["skill"] = skills(self.confusion_)
        return pl.DataFrame(columns)

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
        given |= {"precision": self.precision, "fast": self.fast, "seed": seed}
        return Settings(**(self._protocol().training | given))

    def _build_network(self, data: CrowdData) -> nn.Module:
        some = np.linspace(0, len(data.source) - 1, min(SAMPLE, len(data.source))).astype(np.int64)
        return self._network_for(data.inputs(torch.from_numpy(some).to(data.device)).cpu())

    def _network_for(self, sample: Tensor) -> nn.Module:
        """Build a network for rows like those of a sample, (n_rows, ...)."""
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

        `score` gives the sum of a loss over a batch, or several sums of which the lowest counts,
        and the number of terms in it.
        """
        labelled = np.flatnonzero((self.table_.labels_per_item() > 0) | (self.gold_ >= 0))
        rest, held_out = split_positions(len(labelled), self.validation, settings.seed)
        judged = torch.from_numpy(labelled[held_out]).to(data.device)

        @torch.no_grad()
        def held_out_loss() -> float:
            with autocast(data.device, settings.precision):
                scores = [score(batch) for batch in data.batches(judged, PREDICT_BATCH)]
            total = torch.stack([total for total, _ in scores]).sum(0)
            return float(total.min()) / max(sum(n for _, n in scores), 1)

        return self._run(
            learned,
            objective,
            data,
            labelled[rest],
            settings,
            held_out_loss if len(judged) else None,
        )

    def _run(
        self,
        learned: nn.Module,
        objective: Callable[[Batch], Tensor],
        data: CrowdData,
        items: NDArray[np.intp],
        settings: Settings,
        score: Callable[[], float] | None = None,
    ) -> list[Epoch]:
        """Train on some items, as the next stage of this fit."""
        checkpoint = self._stages.next()
        return train(
            learned,
            objective,
            data,
            torch.from_numpy(items).to(data.device),
            settings,
            score=score,
            callbacks=self.callbacks,
            verbose=self.verbose,
            checkpoint=checkpoint,
            fingerprint=(
                "" if checkpoint is None else fingerprint(self, settings, self.table_, self.gold_)
            ),
        )

    def _with_gold(self, batch: Batch, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Make logits certain where the class is known, and give what learning it costs.

        Returns
        -------
        logits : Tensor of shape (n_rows, n_classes)
            For the likelihood of the labels: annotators are judged by what is known.
        loss : Tensor of shape ()
            The cross-entropy of the known classes, divided by the rows of the batch.
        """
        if not np.any(self.gold_ >= 0):
            return logits, logits.new_zeros(())
        known = torch.from_numpy(self.gold_).to(batch.item.device)[batch.item].long()
        loss = F.cross_entropy(logits.float(), known, ignore_index=-1, reduction="sum")
        certain = CERTAIN * F.one_hot(known.clamp_min(0), logits.shape[1]).to(logits.dtype)
        return torch.where(known[:, None] >= 0, certain, logits), loss / len(batch.item)

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


def settled(probabilities: NDArray[Any], gold: NDArray[np.int32]) -> NDArray[Any]:
    """Give probabilities (n_items, n_classes) that are certain where the class is known."""
    known = np.flatnonzero(gold >= 0)
    if len(known) == 0:
        return probabilities
    certain = probabilities.copy()
    certain[known] = np.eye(probabilities.shape[1])[gold[known]]
    return certain


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
