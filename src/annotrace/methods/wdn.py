"""Weighted Doctor Net (Guan et al., AAAI 2018): a head for each annotator on a shared body.

Each head learns to predict the labels of its annotator. Then, with body and heads frozen, weights
are learned for averaging the heads, so that the average fits the votes of an item. There is no
hidden truth and no confusion matrix: the weights reflect how much an annotator's labels contribute
to the votes, not who is correct. (Weights fitted to majority votes favour those who are, but lost
eight points on digits with five flippers, dense: .85 against .93.)

With many annotators heads have sparse gradients, and the weights are learned from a sample of heads
at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.aggregation.run_schema import DISTRIBUTIONS, Array
from annotrace.crowd.losses import cross_entropy
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels.vocabulary import look_up
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.methods.warm_start import Previous
from annotrace.parameters import Count
from annotrace.training import Batch, CrowdData, Epoch, Inputs, Settings

HEADS_AT_ONCE = 256
SPARSE_ABOVE = 1_000


class AnnotatorHeads(nn.Module):
    """A linear classifier for each annotator, and a weight for averaging them.

    Parameters
    ----------
    n_annotators, width, n_classes : int
    """

    lr_scale = 1.0

    def __init__(self, n_annotators: int, width: int, n_classes: int) -> None:
        super().__init__()
        self.n_classes, self.n_inputs = n_classes, width + 1
        self.sparse = n_annotators > SPARSE_ABOVE
        # All heads start equal, so that one with few labels stays near the others.
        start = nn.Linear(width, n_classes)
        head = torch.cat([start.weight, start.bias[:, None]], dim=1).detach().flatten()
        self.weight = nn.Parameter(head.repeat(n_annotators, 1))

    def forward(self, features: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        """Return the logits of each label's annotator for its row, (n_labels, n_classes)."""
        heads = F.embedding(annotator, self.weight, sparse=self.sparse)
        heads = heads.view(len(annotator), self.n_classes, self.n_inputs)
        logits = torch.bmm(heads[:, :, :-1], features[row][:, :, None]).squeeze(2)
        return logits + heads[:, :, -1]

    def everyone(self, features: Tensor, annotators: Tensor) -> Tensor:
        """Return p(label) of some annotators for every row, (n_rows, n_annotators, n_classes)."""
        heads = self.weight[annotators].view(len(annotators), self.n_classes, -1)
        logits = torch.einsum("nw,acw->nac", features, heads[:, :, :-1])
        return (logits + heads[:, :, -1]).softmax(2)


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedDoctorNet(NetworkEstimator):
    """A head for each annotator, averaged with learned weights.

    Heads predict annotators' labels, so gold items contribute to the weights only.

    Parameters
    ----------
    width : int
        Features that the body passes to the heads (your own module passes its outputs).
    **others
        See `NetworkEstimator` and `CrowdEstimator`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_annotators,)
        The weight of each annotator in the average; they sum to one.
    """

    width: Count = 64

    method: ClassVar[str] = "wdn"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **NetworkEstimator.saved_attributes,
        "weights_": Array("f", ("annotators",), DISTRIBUTIONS),
    }

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Train body and heads, then the weights of the heads."""
        if trial.number:
            with data.random.initial_weights():
                self._build_modules(data.device)
        learned = nn.ModuleDict({"network": self.network_, "heads": self._heads})
        score = None if self.select != "likelihood" else self._head_score
        history = self._train(learned, self._objective(data, trial.mixup), data, settings, score)
        self._learn_weights(data, settings)
        return history

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        # The network returns features here; the heads compute logits from them.
        return self._head_loss(batch, logits) / len(batch.item)

    def _head_score(self, batch: Batch) -> tuple[Tensor, int]:
        return self._head_loss(batch, self.network_(batch.inputs)), len(batch.label)

    def _head_loss(self, batch: Batch, features: Tensor) -> Tensor:
        logits = self._heads(features, batch.row, batch.annotator)
        return F.cross_entropy(logits, batch.label, reduction="sum")

    def _learn_weights(self, data: CrowdData, settings: Settings) -> None:
        votes = CrowdProblem(self.table_, self.gold_).votes().float().to(data.device)

        def objective(batch: Batch) -> Tensor:
            batch = data.share(batch)
            with torch.no_grad():
                features = self.network_.eval()(batch.inputs)
                some = self._some_annotators(data.random.generator)
                labels = self._heads.everyone(features, some)
            share = self._average.weight[some, 0].softmax(0)
            log_average = torch.einsum("a,nac->nc", share, labels).clamp_min(1e-12).log()
            return cross_entropy(log_average, votes[batch.item]).mean()

        def score(batch: Batch) -> tuple[Tensor, int]:
            average = self._averaged(self.network_(batch.inputs))
            return cross_entropy(average.log(), votes[batch.item]).sum(), len(batch.item)

        part = replace(settings, epochs=max(1, settings.epochs // 4), lr=10 * settings.lr)
        chosen = score if self.select == "likelihood" else None
        self._train(self._average, objective, data, part, chosen)
        self.weights_ = self._shares().cpu().double().numpy()

    def _some_annotators(self, generator: torch.Generator | None) -> Tensor:
        active = self._active
        if len(active) <= HEADS_AT_ONCE:
            return active
        size = (HEADS_AT_ONCE,)
        return active[torch.randint(len(active), size, device=active.device, generator=generator)]

    def _shares(self) -> Tensor:
        logits = torch.full_like(self._average.weight[:, 0], -torch.inf)
        logits[self._active] = self._average.weight[self._active, 0].detach()
        return logits.softmax(0)

    def _averaged(self, features: Tensor) -> Tensor:
        """Return the weighted average of all heads, some at a time, (n_rows, n_classes)."""
        shares = self._shares()
        parts = [
            torch.einsum("a,nac->nc", shares[part], self._heads.everyone(features, part))
            for part in self._active.split(HEADS_AT_ONCE)
        ]
        return torch.stack(parts).sum(0).clamp_min(1e-12)

    def _class_scores(self, inputs: Inputs) -> Tensor:
        return self._over_views(
            lambda rows: self._averaged(self.network_(rows).float()).log(), inputs
        )

    def _n_outputs(self) -> int:
        return self.table_.n_classes if isinstance(self.backbone, nn.Module) else self.width

    def _build_modules(self, device: torch.device) -> None:
        self.annotator_model_ = None
        table = self.table_
        self._active = torch.from_numpy(table.labels_per_annotator().nonzero()[0]).to(device)
        self._heads = AnnotatorHeads(table.n_annotators, self._n_outputs(), table.n_classes)
        self._heads.to(device)
        self._average = nn.Embedding(table.n_annotators, 1).to(device)
        nn.init.zeros_(self._average.weight)

    @torch.no_grad()
    def _initialize_from(self, previous: Previous) -> None:
        """Keep the heads and weights of annotators by name; new ones start with the mean."""
        super()._initialize_from(previous)
        place = torch.from_numpy(look_up(self.table_.annotators, previous.table.annotators)).long()
        for name, part in (("heads", self._heads), ("average", self._average)):
            learned = previous.modules[name].get_parameter("weight")
            with_mean = torch.cat([learned, learned.mean(0, keepdim=True)])
            part.weight.copy_(with_mean[place.to(learned.device)])

    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""
        return {"network": self.network_, "heads": self._heads, "average": self._average}
