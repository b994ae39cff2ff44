"""Generalized EM (Raykar et al., ICML 2009, JMLR 2010): Algorithm 2 of the paper.

The truth of an item is hidden; a network is its prior and each annotator has a confusion matrix.
Starting from the shares of votes q, T times:

- M-step for the network: some epochs on the targets q;
- M-step for the matrices: A[r, i, j] = sum_n q_ni 1[r said j of n] / sum_n q_ni 1[r labelled n];
- E-step: q_ni proportional to p(i | x_n) prod_r A[r, i, label].

The step with the lowest held-out loss is kept, as the paper's best model is chosen over the course
of training: a step that learned from the errors of another may be worse.

Errors of the paper's listing, corrected here: q starts from the votes divided by the number of
labels of the item, not by R; the M-step swaps i and j; indices n and i are mixed.

With one label per item and no smoothing, A = I is a fixed point: q is the label itself, so the
M-step gives the identity, under which the E-step can only return the label. That is why the paper
reports that it fails there. `smoothing` lets the network overrule a label.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from annotrace.crowd.annotator_model import FixedMatrices
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.losses import cross_entropy
from annotrace.crowd.problem import CrowdProblem
from annotrace.errors import InputError
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.parameters import Count, NotNegative
from annotrace.training import Batch, CrowdData, Epoch, Settings, held_out_loss, join_histories


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralizedEM(NetworkEstimator):
    """EM around a network.

    Parameters
    ----------
    n_steps : int
        EM steps (T); `epochs` are divided among them (G epochs each).
    smoothing : float
        Added to each count of the M-step for the matrices; 0 is the paper's.
    keep_weights : bool
        Keep the network's weights from step to step, as the listing does, or start each M-step with
        a new network: it has not memorised any labels, but has fewer epochs to learn in. Digits
        with two labels per item by pairwise flippers at .4, three draws: .883 kept, .921 new;
        posterior of digits reduced to five components, one label per item, four draws: .920 and
        .877.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    n_steps: Count = 4
    smoothing: NotNegative = 1.0
    keep_weights: bool = True

    method: ClassVar[str] = "gem"
    repairs_classes: ClassVar[bool] = True

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Alternate between the network, the matrices and the posterior (Algorithm 2)."""
        if self.n_steps > settings.epochs:
            raise InputError(
                f"Expected `n_steps` to be at most the number of epochs ({settings.epochs}), "
                f"but got {self.n_steps}."
            )
        problem = CrowdProblem(self.table_, self.gold_)
        self._build_modules(data.device)
        truth = self._initial_truth(problem, data, trial)
        self._count_matrices(problem, truth)
        history: list[Epoch] = []
        lowest, kept = math.inf, dict[str, Tensor]()
        for step in range(self.n_steps):
            if step and not self.keep_weights:
                self.network_ = self._build_network(data)
            done = self._fit_network(data, truth, settings, trial, step)
            history = join_histories(history, done)
            log_p = self._log_proba(data)
            self._count_matrices(problem, problem.set_gold(self._counted(truth, log_p)))
            if (loss := held_out_loss(done)) <= lowest or not kept:
                lowest, kept = loss, copy.deepcopy(self._all_modules().state_dict())
            truth = self._infer(problem, log_p)
        self._all_modules().load_state_dict(kept)
        return history

    def _initial_truth(self, problem: CrowdProblem, data: CrowdData, trial: Trial) -> Tensor:
        """Return the votes, or what the recipe or a warm start begins with."""
        if trial.start is None:
            return problem.votes()
        if trial.start.posterior is not None:
            return problem.set_gold(problem.tensor(trial.start.posterior))
        self._annotators.set_matrices(torch.from_numpy(trial.start.matrices))
        return self._infer(problem, self._log_proba(data))

    def _fit_network(
        self, data: CrowdData, truth: Tensor, settings: Settings, trial: Trial, step: int
    ) -> list[Epoch]:
        self._targets = truth.float().to(data.device)
        shares = torch.arange(self.n_steps + 1) * settings.epochs // self.n_steps
        part = replace(
            settings, epochs=int(shares[step + 1] - shares[step]), seed=settings.seed + 7919 * step
        )
        return self._train(self.network_, self._objective(data, trial.mixup), data, part)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        return cross_entropy(logits, self._targets[batch.item]).mean()

    def _counted(self, truth: Tensor, log_p: Tensor) -> Tensor:
        """Return the classes from which matrices are counted, (n_items, n_classes)."""
        return truth

    def _log_prior(self, log_p: Tensor) -> Tensor:
        """Return the prior of the E-step, (n_items, n_classes) or (n_classes,)."""
        return log_p

    def _count_matrices(self, problem: CrowdProblem, truth: Tensor) -> None:
        counts = problem.counts(truth.to(problem.dtype))
        matrices = matrices_from_counts(counts, self.smoothing)
        # Without smoothing, an annotator who labelled no item of a class has 0 / 0 there.
        self._annotators.set_matrices(matrices.nan_to_num_(1 / self.table_.n_classes))

    def _infer(self, problem: CrowdProblem, log_p: Tensor) -> Tensor:
        log_matrices = self._annotators.log_matrices().cpu().to(problem.dtype)
        log_prior = self._log_prior(log_p).to(problem.dtype)
        return problem.e_step(problem.labels.sum_matrices(log_matrices).add_(log_prior))[0]

    @property
    def _annotators(self) -> FixedMatrices:
        assert isinstance(self.annotator_model_, FixedMatrices)
        return self.annotator_model_

    def _all_modules(self) -> nn.ModuleDict:
        return nn.ModuleDict(self.learned_modules())

    def _build_modules(self, device: torch.device) -> None:
        sizes = self.table_.n_annotators, self.table_.n_classes
        self.annotator_model_ = FixedMatrices.uniform(*sizes).to(device)
