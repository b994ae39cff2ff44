"""One confusion matrix for all annotators (Sukhbaatar et al., ICLR workshop 2015).

The majority vote of an item is taken for one label by one annotator, whose matrix is learned with
the network as in `TraceRegularized`. Sukhbaatar et al. penalise the matrix by other means; the
trace is what the paper compares with.

Use it where annotators are unknown, or make the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from annotrace.aggregation.run_schema import DISTRIBUTIONS, Array
from annotrace.crowd.confusion import Confusion
from annotrace.crowd.em import posterior
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.losses import label_log_likelihood, trace_regularized_nll
from annotrace.crowd.result import CrowdResult
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.methods.targets import majority_targets
from annotrace.parameters import NotNegative, Positive
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class SingleConfusion(NetworkEstimator):
    """A network and one confusion matrix, that of the majority vote.

    Parameters
    ----------
    lam : float
        Weight of the trace.
    confusion_lr, diagonal
        As in `TraceRegularized`.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.

    Attributes
    ----------
    vote_confusion_ : ndarray of shape (n_classes, n_classes)
        [true, voted]; annotators are not modelled, and there is no `confusion_`.
    """

    lam: NotNegative = 0.01
    confusion_lr: Positive | None = None
    diagonal: float | None = None

    method: ClassVar[str] = "single-cm"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **NetworkEstimator.saved_attributes,
        "vote_confusion_": Array("f", ("classes", "classes"), DISTRIBUTIONS),
    }

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the trace-regularised loss of the votes."""
        self._vote = majority_targets(self.table_, settings.seed).argmax(1).to(data.device)
        voted = torch.from_numpy(self.table_.labels_per_item() > 0).to(data.device)
        self._voted = None if bool(voted.all()) else voted
        self._build_modules(data.device)
        learned = nn.ModuleDict({"network": self.network_, "vote": self.vote_model_})
        history = self._train(learned, self._objective(data, trial.mixup), data, settings)
        self.vote_confusion_ = self.vote_model_.matrices()[0].cpu().double().numpy()
        return history

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        labels = self._labels(batch.item)

        def label_loss(logits: Tensor) -> Tensor:
            return trace_regularized_nll(logits, self.vote_model_, *labels, self.lam)

        return self._with_gold(batch, logits, label_loss)

    def _score(self, batch: Batch, logits: Tensor) -> tuple[Tensor, int]:
        labels = self._labels(batch.item)
        return -label_log_likelihood(logits, self.vote_model_, *labels).sum(), len(labels[0])

    def _labels(self, item: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the vote of each item as the one label of its row: row, annotator, label.

        Items without labels, such as gold items that nobody labelled, have no vote.
        """
        row = torch.arange(len(item), device=item.device)
        if self._voted is not None:
            row = row[self._voted[item]]
            item = item[row]
        return row, torch.zeros_like(row), self._vote[item]

    @torch.no_grad()
    def _make_result(self, data: CrowdData) -> CrowdResult:
        log_p = self._log_proba(data)
        row, annotator, vote = self._labels(torch.arange(len(log_p), device=data.device))
        labels = LabelIndex(row, annotator, vote, len(log_p), 1, self.table_.n_classes)
        likelihood = self.vote_model_.item_log_likelihood(labels)
        combined = posterior(log_p, likelihood.cpu().double())
        return self._result(combined.numpy(), log_p.exp().numpy())

    def _build_modules(self, device: torch.device) -> None:
        self.annotator_model_ = None
        self.vote_model_ = Confusion(
            1,
            self.table_.n_classes,
            lr_scale=self._or_protocol("confusion_lr"),
            diagonal=self._or_protocol("diagonal"),
        ).to(device)

    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""
        return {"network": self.network_, "vote": self.vote_model_}
