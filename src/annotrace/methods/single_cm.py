"""One confusion matrix for all (Sukhbaatar et al., ICLR workshop 2015).

The majority vote of an item is taken for one label by one annotator, whose matrix is learned with
the network as in `TraceRegularized`. Sukhbaatar et al. penalise the matrix by other means; the
trace is what the paper compares with.

Use it where annotators are not known, or err alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from annotrace.methods.base import CrowdEstimator
from annotrace.methods.targets import majority_targets
from annotrace.models import Confusion, label_log_likelihood, posterior, trace_regularized_nll
from annotrace.parameters import NotNegative, Positive
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class SingleConfusion(CrowdEstimator):
    """A network and one confusion matrix, that of the majority vote.

    Parameters
    ----------
    lam : float
        Scale of the trace.
    confusion_lr, diagonal
        As in `TraceRegularized`.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    vote_confusion_ : ndarray of shape (n_classes, n_classes)
        [true, voted]; annotators are not modelled, and there is no `confusion_`.
    """

    lam: NotNegative = 0.01
    confusion_lr: Positive | None = None
    diagonal: float | None = None

    method: ClassVar[str] = "single-cm"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self._vote = majority_targets(self.table_, settings.seed).argmax(1).to(data.device)
        silent = (self.table_.labels_per_item() == 0) & (self.gold_ >= 0)
        self._silent = torch.from_numpy(silent).to(data.device) if silent.any() else None

        def objective(batch: Batch) -> Tensor:
            def label_loss(logits: Tensor) -> Tensor:
                labels = self._labels(batch.item)
                return trace_regularized_nll(logits, self._layer, *labels, self.lam)

            return self._with_gold(batch, self.network_(batch.inputs), label_loss)

        def score(batch: Batch) -> tuple[Tensor, int]:
            labels = self._labels(batch.item)
            logits = self.network_(batch.inputs)
            return -label_log_likelihood(logits, self._layer, *labels).sum(), len(labels[0])

        history = self._train(nn.ModuleDict(self._parts()), objective, score, data, settings)
        self.vote_confusion_ = self._layer.matrices()[0].cpu().double().numpy()
        return history

    def _labels(self, item: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give the vote of each item as the one label of its row: row, annotator, label.

        Items whose class is known and that nobody labelled have no vote.
        """
        row = torch.arange(len(item), device=item.device)
        if self._silent is not None:
            row = row[~self._silent[item]]
            item = item[row]
        return row, torch.zeros_like(row), self._vote[item]

    @torch.no_grad()
    def _read_out(self, data: CrowdData) -> None:
        log_p = torch.log_softmax(self._logits(data).cpu().double(), dim=1)
        labelled = torch.from_numpy(self.table_.labels_per_item() > 0).to(data.device)
        row, annotator, vote = self._labels(torch.arange(len(log_p), device=data.device))
        log_columns = self._layer.log_columns(annotator, vote) * labelled[row, None]
        self.posterior_ = posterior(log_p, log_columns.cpu().double(), row.cpu()).numpy()

    def _build_parts(self, device: torch.device) -> None:
        self._layer = Confusion(
            1,
            self.table_.n_classes,
            lr_scale=self._or_protocol("confusion_lr"),
            diagonal=self._or_protocol("diagonal"),
        ).to(device)

    def _parts(self) -> dict[str, nn.Module]:
        return {"network": self.network_, "confusion": self._layer}

    def _columns(self) -> None:
        return None
