r"""EM around annotators who fail in a region, and the choice of how far errors depend on the item.

Given a classifier's out-of-fold predictions p and the coordinates z of all items, EM alternates
between the class of each item with the branch of each label (able or failing), and the two
matrices, the gate and the classifier's temperature (`annotrace.crowd.regional`)::

    E: q_n(i) ~ p_n(i)^(1/T) prod_r [g_r(z_n) A[r, i, label] + (1 - g_r(z_n)) B[r, i, label]]
       h_l(i) = share of the first term in the likelihood of label l
    M: A from counts weighted by q h, B by q (1 - h), with Dirichlet priors that annotators share;
       gates by logistic regression on z, with a ridge penalty

The strength of the penalty is chosen by cross-validation: each fold is judged by a model that was
fitted to the labels of all other folds, so that no label of an item helps to predict that item's
labels. An infinite strength, errors that do not depend on the item, is kept unless a finite one
explains held-out labels significantly better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.dirichlet import initial_pool, update_pool
from annotrace.crowd.em import matrices_from_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.regional import RegionalAnnotators, fit_gates
from annotrace.crowd.sums import sum_groups
from annotrace.crowd.temperature import fit_temperature, tempered_e_step
from annotrace.labels.table import LabelTable
from annotrace.methods.class_repair import minimum_gain

STRENGTHS = (4.0, 0.5, 0.1, 0.02)
"""Finite strengths of the penalty, beside infinity."""

N_ITER = 25
CALIBRATE_EVERY = 5
NEWTON_STEPS = 2
START_STEPS = 6
ALWAYS_ABLE = 50.0
MINIMUM = 2.0
"""How many times the minimum gain of a fit must be gained. On 13 simulated crowds whose errors do
not depend on the item, the largest gain is 1.72 times that."""


class RegionalFit(NamedTuple):
    """Annotators fitted to some items, and the temperature of the classifier beside them."""

    annotators: RegionalAnnotators
    temperature: float


class HeldOutFit(NamedTuple):
    """What models that have not seen an item make of it.

    Attributes
    ----------
    posterior : Tensor of shape (n_items, n_classes)
    label_loss : float
        Negative log-likelihood per label.
    """

    posterior: Tensor
    label_loss: float


class RegionalChoice(NamedTuple):
    """The best strength that is significantly better than infinity, and what it gives.

    Attributes
    ----------
    strength : float
    posterior : Tensor of shape (n_items, n_classes)
        Of each item by a model fitted to other folds.
    gain : float
        How much less the negative log-likelihood per held-out label is.
    """

    strength: float
    posterior: Tensor
    gain: float


class Evidence(NamedTuple):
    """All that EM takes.

    Attributes
    ----------
    table : LabelTable
    gold : ndarray of int, shape (n_items,)
        The class of each gold item, -1 elsewhere.
    logits : Tensor of shape (n_items, n_classes)
        Of a classifier that has not learned from the item.
    start : Tensor of shape (n_items, n_classes)
        A posterior to start from.
    items : Tensor of shape (n_items, n_dims)
        Coordinates.
    """

    table: LabelTable
    gold: NDArray[np.int32]
    logits: Tensor
    start: Tensor
    items: Tensor

    def select(self, keep: NDArray[np.bool_]) -> Evidence:
        """Return the evidence about some items."""
        table, chosen = self.table.select_items(keep), torch.from_numpy(keep)
        parts = (each[chosen] for each in (self.logits, self.start, self.items))
        return Evidence(table, self.gold[keep], *parts)


def choose_strength(evidence: Evidence, fold: NDArray[np.int64]) -> RegionalChoice | None:
    """Return how far errors depend on the item, None if they do not significantly.

    Parameters
    ----------
    evidence : Evidence
    fold : ndarray of int, shape (n_items,)
        What the strength of the penalty is cross-validated over.
    """
    constant = held_out_fit(evidence, fold, None).label_loss
    tried = [(held_out_fit(evidence, fold, strength), strength) for strength in STRENGTHS]
    held_out, strength = min(tried, key=lambda each: each[0].label_loss)
    gain = constant - held_out.label_loss
    if not gain > MINIMUM * minimum_gain(evidence.table.n_labels):
        return None
    return RegionalChoice(strength, held_out.posterior, gain)


def held_out_fit(evidence: Evidence, fold: NDArray[np.int64], strength: float | None) -> HeldOutFit:
    """Judge the items of each fold by a model fitted to those of all others.

    Parameters
    ----------
    evidence, fold
        As in `choose_strength`.
    strength : float or None
        None is infinite.
    """
    posterior, total = torch.empty_like(evidence.start), 0.0
    for k in np.unique(fold):
        inside = fold == k
        fitted = fit_regional(evidence.select(~inside), strength)
        part = evidence.select(inside)
        found, log_evidence = _judge(part, fitted)
        posterior[torch.from_numpy(inside)] = found
        total += log_evidence
    return HeldOutFit(posterior, -total / max(evidence.table.n_labels, 1))


def fit_regional(evidence: Evidence, strength: float | None) -> RegionalFit:
    """Fit annotators to all items of some evidence by EM; see the module's docstring."""
    return _RegionalEM(evidence, strength).run()


def _judge(evidence: Evidence, fitted: RegionalFit) -> tuple[Tensor, float]:
    """Return the posterior and the log evidence of items that annotators were not fitted to."""
    problem, model = CrowdProblem(evidence.table, evidence.gold), fitted.annotators
    moved = RegionalAnnotators(
        model.log_able.exp(), model.log_failing.exp(), model.gates, evidence.items
    )
    likelihood = moved.item_log_likelihood(problem.labels).to(problem.dtype)
    logits = evidence.logits.to(problem.dtype)
    return tempered_e_step(problem, logits, likelihood, fitted.temperature)


class _RegionalEM:
    def __init__(self, evidence: Evidence, strength: float | None) -> None:
        self.problem = CrowdProblem(evidence.table, evidence.gold)
        self.strength, dtype = strength, self.problem.dtype
        labels = self.problem.labels
        self.row, self.annotator, self.label = (
            part.long() for part in (labels.row, labels.annotator, labels.label)
        )
        self.logits, self.items = evidence.logits.to(dtype), evidence.items.to(dtype)
        self.posterior = self.problem.set_gold(evidence.start.to(dtype))
        n_annotators = self.problem.shape[0]
        self.gates = self.items.new_zeros(n_annotators, 1 + self.items.shape[1])
        self.centre = self._mean_items()
        self.temperature = 1.0
        self.pools = [initial_pool(labels.counts(self.posterior) + 0.1)] * 2
        self.share_able = self._initial_branches()

    def run(self) -> RegionalFit:
        for step in range(N_ITER):
            model = self._m_step()
            likelihood = self._branches(model)
            if step % CALIBRATE_EVERY == 0:
                self.temperature, _ = fit_temperature(self.problem, self.logits, likelihood)
            self.posterior, _ = tempered_e_step(
                self.problem, self.logits, likelihood, self.temperature
            )
        return RegionalFit(model, self.temperature)

    def _mean_items(self) -> Tensor:
        """Return the mean coordinates of the items that each annotator labelled."""
        groups = self.annotator, self.problem.shape[0]
        total = sum_groups(self.items[self.row], groups)[0]
        number = torch.bincount(self.annotator, minlength=groups[1]).clamp_min(1)
        return total / number[:, None]

    def _initial_branches(self) -> Tensor:
        """Return the share of each label's able branch: larger where its annotator is correct."""
        n_classes = self.problem.shape[1]
        if self.strength is None:
            self.gates[:, 0] = ALWAYS_ABLE
            return self.items.new_ones(len(self.row), n_classes)
        correct = self.posterior[self.row, self.label]
        centred = self.items[self.row] - self.centre[self.annotator]
        weights = centred, self.annotator, correct, 1 - correct, self.gates
        slopes = fit_gates(*weights, self.strength, START_STEPS)[:, 1:]
        self.gates = torch.cat([-(slopes * self.centre).sum(1, keepdim=True), slopes], 1)
        share = torch.sigmoid((centred * slopes[self.annotator]).sum(1))
        return share[:, None].repeat(1, n_classes)

    def _m_step(self) -> RegionalAnnotators:
        posterior = self.posterior[self.row]
        able = posterior * self.share_able
        matrices = self._count(able, 0), self._count(posterior - able, 1)
        if self.strength is not None:
            shares = able.sum(1), (posterior - able).sum(1)
            labelled = self.items[self.row], self.annotator
            self.gates = fit_gates(*labelled, *shares, self.gates, self.strength, NEWTON_STEPS)
        return RegionalAnnotators(*matrices, self.gates, self.items)

    def _count(self, weights: Tensor, branch: int) -> Tensor:
        """Return matrices counted with weights (n_labels, n_classes), shrunk towards a pool."""
        n_annotators, n_classes, _ = self.problem.shape
        answer = self.label + self.annotator * n_classes
        by_answer = sum_groups(weights, (answer, n_annotators * n_classes))[0]
        counts = by_answer.view(n_annotators, n_classes, n_classes).transpose(1, 2)
        self.pools[branch] = update_pool(counts, self.pools[branch])
        return matrices_from_counts(counts, self.pools[branch])

    def _branches(self, model: RegionalAnnotators) -> Tensor:
        """Return the log-likelihood of each item's labels; set the branches' shares."""
        if self.strength is None:
            return self.problem.labels.sum_matrices(model.log_able)
        able, failing = model.branch_logs(self.annotator, self.label, self.row)
        self.share_able = torch.sigmoid(able - failing)
        return self.problem.labels.sum_by_item(torch.logaddexp(able, failing))
