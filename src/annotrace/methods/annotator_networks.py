"""Methods whose confusion matrices come from a network on embeddings: what they share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.annotator_network import AnnotatorNetwork
from annotrace.crowd.safe_math import at_least_float32, mixture_log_likelihood
from annotrace.errors import DivergenceError, InputError
from annotrace.labels.vocabulary import look_up
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.methods.warm_start import Previous
from annotrace.parameters import Count
from annotrace.training import Batch, CrowdData, Epoch, Inputs, Settings, autocast


@dataclass(kw_only=True, eq=False, repr=False)
class AnnotatorNetworkEstimator(NetworkEstimator):
    """A classifier and an `AnnotatorNetwork`.

    If matrices depend on the item, the last layer of the network returns the embedding of the item
    beside its logits. Your own module returns logits alone; the embedding is then their softmax.
    """

    by_item: bool = False
    embed_size: Count = 16

    repairs_classes: ClassVar[bool] = True

    @abstractmethod
    def _make_annotators(self, n_items: int, item_size: int) -> AnnotatorNetwork:
        """Build the annotator model; both sizes are 0 if it does not depend on the item."""

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the loss over minibatches, then store the embeddings of the items."""
        if trial.number:
            with data.random.initial_weights():
                self._build_modules(data.device)
        if trial.start is not None and self.warm_trial is None:
            self._annotators.set_matrices(torch.from_numpy(trial.start.matrices))
        learned = nn.ModuleDict(self.learned_modules())
        history = self._train(learned, self._objective(data, trial.mixup), data, settings)
        if self.by_item:
            self.network_.eval()
            data.map(lambda item: self._store_embeddings(item, data.inputs(item)))
        if not torch.isfinite(self._annotators.matrices()).all():
            raise DivergenceError(
                f"The confusion matrices are NaN: lower `lr` (it is {settings.lr:g})."
            )
        return history

    def _split_outputs(self, outputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return logits and, if matrices depend on the item, its embedding."""
        n_classes = self.table_.n_classes
        if not self.by_item:
            return outputs, None
        if isinstance(self.backbone, nn.Module):
            return outputs, torch.softmax(outputs.float(), dim=1)
        return outputs[:, :n_classes], outputs[:, n_classes:]

    def _store_embeddings(self, item: Tensor, inputs: Inputs) -> Tensor:
        with autocast(inputs.device, self.precision):
            embedding = self._over_views(lambda rows: self._embed(self.network_(rows)), inputs)
        self._annotators.embed_items(item, embedding)
        return embedding

    def _embed(self, outputs: Tensor) -> Tensor:
        embedding = self._split_outputs(outputs)[1]
        assert embedding is not None
        return embedding

    def _class_scores(self, inputs: Inputs) -> Tensor:
        return super()._class_scores(inputs)[:, : self.table_.n_classes]

    def _best_score(self, batch: Batch) -> tuple[Tensor, int]:
        if self.by_item:
            self._store_embeddings(batch.item, batch.inputs)
        return super()._best_score(batch)

    def _n_outputs(self) -> int:
        adds = self.by_item and not isinstance(self.backbone, nn.Module)
        return self.table_.n_classes + (self.embed_size if adds else 0)

    def _claimed_size(self) -> int:
        return super()._claimed_size() + self.embed_size**3

    @property
    def _annotators(self) -> AnnotatorNetwork:
        assert isinstance(self.annotator_model_, AnnotatorNetwork)
        return self.annotator_model_

    def _build_modules(self, device: torch.device) -> None:
        own = isinstance(self.backbone, nn.Module)
        item_size = self.table_.n_classes if own else self.embed_size
        sizes = (self.table_.n_items, item_size) if self.by_item else (0, 0)
        self.annotator_model_ = self._make_annotators(*sizes).to(device)

    @torch.no_grad()
    def _initialize_from(self, previous: Previous) -> None:
        """Keep the annotators' network, and their embeddings by name; new ones have the mean."""
        super()._initialize_from(previous)
        place = torch.from_numpy(look_up(self.table_.annotators, previous.table.annotators)).long()
        learned, own = previous.modules["annotators"].state_dict(), self._annotators.state_dict()
        known = learned["embedding"]
        with_mean = torch.cat([known, known.mean(0, keepdim=True)])
        learned["embedding"] = with_mean[place.to(known.device)]
        learned["item_embedding"] = own["item_embedding"]
        if _shapes(learned) != _shapes(own):
            raise InputError(
                "Expected `embed_size`, `by_item` and `matrices` of the last fit: fit with "
                "`warm_start=False`."
            )
        self._annotators.load_state_dict(learned)


def log_proba_of_labels(logits: Tensor, log_likelihood: Tensor, row: Tensor) -> Tensor:
    """Return log p(label | x, annotator) for each label, shape (n_labels,).

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
    log_likelihood : Tensor of shape (n_labels, n_classes)
        log p(label | true class) of each label.
    row : LongTensor of shape (n_labels,)
        The row of `logits` that each label belongs to.
    """
    log_p = F.log_softmax(at_least_float32(logits), dim=-1)
    return mixture_log_likelihood(log_p, log_likelihood, row)


def _shapes(state: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in state.items()}
