"""Generalized EM (Raykar et al., ICML 2009, JMLR 2010): Algorithm 2 of the paper.

The truth of an item is hidden; a network is its prior and each annotator has a confusion matrix.
Starting from the shares of votes q, T times:

- M-step for the network: some epochs on the targets q;
- M-step for the matrices: A[r, i, j] = sum_n q_ni 1[r said j of n] / sum_n q_ni 1[r labelled n];
- E-step: q_ni proportional to p(i | x_n) prod_r A[r, i, label].

The step is kept whose best epoch had the lowest held-out loss, as the paper's best model is chosen
over the course of training: one that learned from the errors of another may be the worse of them.

Slips of the paper's listing, mended here: q starts from the votes divided by the labels an item
has, not by R; the M-step swaps i and j; indices n and i are mixed.

With one label an item and no smoothing, A = I is a fixed point: q is the label itself, so the
M-step gives identity, under which the E-step can only give the label back. That is why the paper
reports that it fails there. `smoothing` lets the network overrule a label.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from annotrace.aggregation.evidence import Evidence
from annotrace.diagnosis.metrics import with_pool
from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.targets import cross_entropy
from annotrace.models import FixedConfusion
from annotrace.parameters import Count, NotNegative
from annotrace.training import Batch, CrowdData, Epoch, Settings, held_out_loss, join_histories


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralizedEM(CrowdEstimator):
    """EM around a network.

    Parameters
    ----------
    steps : int
        EM steps (T); `epochs` are shared out among them (G epochs each).
    smoothing : float
        Added to each count of the M-step for the matrices; 0 is the paper's.
    warm : bool
        Keep the network's weights from step to step, as the listing does, or begin each M-step
        anew: what it has memorised of the labels is forgotten, and fewer epochs are left to learn
        in. Digits with two labels an item by pairwise flippers at .4, three draws: .883 kept, .921
        anew; the truth of digits cut to five components, one label an item, four draws: .920 and
        .877.
    **others
        See `CrowdEstimator`.
    """

    steps: Count = 4
    smoothing: NotNegative = 1.0
    warm: bool = True

    method: ClassVar[str] = "gem"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        if self.steps > settings.epochs:
            raise InputError(
                f"Expected `steps` to be at most the number of epochs ({settings.epochs}), "
                f"but got {self.steps}."
            )
        evidence = Evidence(self.table_, self.gold_)
        truth = evidence.votes()
        self._set_matrices(evidence, truth)
        history: list[Epoch] = []
        lowest, kept = math.inf, dict[str, Tensor]()
        for step in range(self.steps):
            if step and not self.warm:
                self.network_ = self._build_network(data).to(data.device)
            done = self._fit_network(data, truth, settings, step)
            history = join_histories(history, done)
            log_p = torch.log_softmax(self._logits(data).cpu().double(), dim=1)
            self._set_matrices(evidence, evidence.set_gold(self._counted(truth, log_p)))
            if (loss := held_out_loss(done)) <= lowest or not kept:
                lowest, kept = loss, copy.deepcopy(nn.ModuleDict(self._parts()).state_dict())
            truth = self._infer(evidence, log_p)
        nn.ModuleDict(self._parts()).load_state_dict(kept)
        matrices = self._layer.matrices().cpu().double().numpy()
        self.confusion_ = with_pool(matrices, self.table_.labels_per_annotator())
        return history

    def _counted(self, truth: Tensor, log_p: Tensor) -> Tensor:
        """Give the classes of items that the matrices are counted from, (n_items, n_classes)."""
        return truth

    def _log_prior(self, log_p: Tensor) -> Tensor:
        """Give the prior of the E-step, (n_items, n_classes) or (n_classes,)."""
        return log_p

    def _fit_network(
        self, data: CrowdData, truth: Tensor, settings: Settings, step: int
    ) -> list[Epoch]:
        targets = truth.float().to(data.device)
        shares = torch.arange(self.steps + 1) * settings.epochs // self.steps
        part = replace(
            settings,
            epochs=int(shares[step + 1] - shares[step]),
            seed=settings.seed + 7919 * step,
        )

        def objective(batch: Batch) -> Tensor:
            return cross_entropy(self.network_(batch.inputs), targets[batch.item]).mean()

        return self._train(self.network_, objective, self._label_loss, data, part)

    def _set_matrices(self, evidence: Evidence, truth: Tensor) -> None:
        counts = evidence.count(truth.to(evidence.dtype)).transpose(1, 2) + self.smoothing
        # A class that no item of an annotator belongs to leaves nothing to divide by.
        total = counts.sum(2, keepdim=True)
        uniform = torch.full_like(counts, 1 / counts.shape[2])
        self._layer.set_matrices(torch.where(total > 0, counts / total.clamp_min(1e-30), uniform))

    def _infer(self, evidence: Evidence, log_p: Tensor) -> Tensor:
        columns = self._layer.log_matrices.cpu().transpose(1, 2).to(evidence.dtype)
        return evidence.infer(columns, self._log_prior(log_p).to(evidence.dtype))[0]

    def _build_parts(self, device: torch.device) -> None:
        self._layer = FixedConfusion(self.table_.n_annotators, self.table_.n_classes).to(device)

    def _parts(self) -> dict[str, nn.Module]:
        return {"network": self.network_, "confusion": self._layer}

    def _columns(self) -> FixedConfusion:
        return self._layer
