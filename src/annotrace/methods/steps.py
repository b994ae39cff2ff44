"""The steps that methods are made of: networks, trainings, what is read out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.labels import LabelTable
from annotrace.labels.codes import split_positions
from annotrace.methods.protocols import PROTOCOLS, Protocol
from annotrace.methods.selection import Score, held_out_score
from annotrace.models import label_log_likelihood, posterior
from annotrace.models.crowd_loss import HasColumns
from annotrace.networks import Backbone, build_backbone
from annotrace.training import (
    Batch,
    Callback,
    CheckpointSeries,
    CrowdData,
    Epoch,
    Settings,
    autocast,
    fingerprint,
    train,
)

SAMPLE = 10_000
PREDICT_BATCH = 1024
CERTAIN = 30.0
"""The logit of a class that is known: all others have e^-30 of its probability."""


class Steps:
    """What `fit` of every method is put together from.

    Attributes without a value are the parameters of `CrowdEstimator`, and what `fit` sets.
    """

    backbone: Backbone
    protocol: str
    validation: float
    select: str
    precision: str
    cuda_graphs: bool
    verbose: bool
    callbacks: Sequence[Callback]

    table_: LabelTable
    gold_: NDArray[np.int32]
    network_: nn.Module
    confusion_: NDArray[Any]
    posterior_: NDArray[Any]
    history_: list[Epoch]
    _checkpoints: CheckpointSeries
    _seed: int
    _known: Tensor | None

    def _columns(self) -> HasColumns | None:
        """Give what the method knows of annotators, if it models them."""
        raise NotImplementedError

    def _protocol(self) -> Protocol:
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
        given |= {"precision": self.precision, "cuda_graphs": self.cuda_graphs, "seed": seed}
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
        score: Score,
        data: CrowdData,
        settings: Settings,
    ) -> list[Epoch]:
        """Train on the labelled items, but for the part that `score` judges.

        `score` gives the sum of a loss over a batch, or several sums of which the lowest counts,
        and the number of terms in it.
        """
        rest, held_out = self._parted()
        judged = torch.from_numpy(held_out).to(data.device)
        judge = held_out_score(self.select, score, self._class_scores, self.table_, data.device)

        @torch.no_grad()
        def held_out_loss() -> float:
            with autocast(data.device, settings.precision):
                scores = [judge(batch) for batch in data.batches(judged, PREDICT_BATCH)]
            total = torch.stack([total for total, _ in scores]).sum(0)
            return float(total.min()) / max(sum(n for _, n in scores), 1)

        return self._run(
            learned,
            objective,
            data,
            rest,
            settings,
            held_out_loss if len(judged) else None,
        )

    def _labelled(self) -> NDArray[np.intp]:
        """Give the items that can be learned from: those with labels, or whose class is known."""
        return np.flatnonzero((self.table_.labels_per_item() > 0) | (self.gold_ >= 0))

    def _parted(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Give the labelled items to learn from, and those that are held out by the whole fit."""
        labelled = self._labelled()
        rest, held_out = split_positions(len(labelled), self.validation, self._seed)
        return labelled[rest], labelled[held_out]

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
        checkpoint = self._checkpoints.next()
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
                "" if checkpoint is None else fingerprint(self, settings, data, self.gold_)
            ),
        )

    def _class_scores(self, batch: Batch) -> Tensor:
        """Give scores of classes for the rows of a batch, shape (n_rows, n_classes)."""
        scores: Tensor = self.network_(batch.inputs)
        return scores

    def _with_gold(
        self, batch: Batch, logits: Tensor, label_loss: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Give the loss of the labels of a batch, and of the classes that are known.

        Logits are certain where the class is known: annotators are judged by what is known. The
        cross-entropy of the known classes is divided by the rows of the batch.
        """
        if self._known is None:
            return label_loss(logits)
        known = self._known[batch.item]
        loss = F.cross_entropy(logits.float(), known, ignore_index=-1, reduction="sum")
        certain = CERTAIN * F.one_hot(known.clamp_min(0), logits.shape[1]).to(logits.dtype)
        given = torch.where(known[:, None] >= 0, certain, logits)
        return label_loss(given) + loss / len(batch.item)

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
        log_p = torch.log_softmax(self._logits(data).cpu().double(), dim=1)
        if columns is None:
            self.posterior_ = log_p.exp().numpy()
            return
        everything = torch.arange(len(data.source), device=data.device)
        batch_parts = []
        for item in everything.split(PREDICT_BATCH):
            row, annotator, label = data.labels(item)
            log_columns = columns.log_columns(annotator, label).cpu().double()
            batch_parts.append(posterior(log_p[item.cpu()], log_columns, row.cpu()))
        self.posterior_ = torch.cat(batch_parts).numpy()

    @torch.no_grad()
    def _logits(self, data: CrowdData) -> Tensor:
        everything = torch.arange(len(data.source), device=data.device)
        self.network_.eval()
        with autocast(data.device, self.precision):  # type: ignore[arg-type]
            parts = [self.network_(data.inputs(item)) for item in everything.split(PREDICT_BATCH)]
        return torch.cat(parts).float() if parts else torch.empty(0, self.table_.n_classes)

    def _device(self) -> torch.device:
        return next(self.network_.parameters()).device
