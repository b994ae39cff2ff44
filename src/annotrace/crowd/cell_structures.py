r"""Structures of confusion matrices that EM learns from the counts of cells.

A structure has far fewer parameters than annotators x classes x classes, learns them from a list of
cells [annotator, true, reported] and gives the likelihood of such cells. Whole matrices are made
for a block of annotators at a time, if at all.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel, sum_by_blocks
from annotrace.crowd.digamma import digamma
from annotrace.crowd.dirichlet import LARGEST, VAGUE, log_vague
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.report_cells import ReportCells

# Labels' worth of prior on an annotator's own outcomes, and on each row of a shared pattern.
OWN_WEIGHT, PATTERN_WEIGHT = 2.0, 1.0


class CellStructure(AnnotatorModel):
    """An annotator model that EM learns by the cells that labels touch."""

    @abstractmethod
    def update(self, cells: ReportCells, counts: Tensor) -> None:
        """Raise the objective of counts (n_cells,): one M-step."""

    @abstractmethod
    def expected_logs(self, cells: ReportCells) -> Tensor:
        """Return the log-likelihood of cells in the E-step, shape (n_cells,)."""

    @abstractmethod
    def log_density(self) -> Tensor:
        """Return what the objective has beside the log evidence, shape ()."""

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes)."""
        return sum_by_blocks(self, labels)

    def mean_trace(self, annotator: Tensor | None = None, n_rows: int | None = None) -> Tensor:
        """Return the mean trace of the confusion matrices, by blocks of annotators, shape ()."""
        traces = [self.matrices(who).diagonal(dim1=1, dim2=2).sum() for who in self.blocks()]
        return torch.stack(traces).sum() / self.n_annotators


class OutcomeStructure(CellStructure):
    r"""An annotator's distribution over outcomes, and the pool's pattern within an outcome.

    .. math:: p(j \mid k, r) = P_{r, u(k)}[o(k, j)] \; Q[k, j]

    The outcome o of a report is, for one skill per class, correct or wrong; in a taxonomy correct,
    wrong within the group, or outside. The annotator's P has a row for each *unit* u of classes:
    each class, or each group. Q sums to one over the classes of an outcome and is the same for all.

    :math:`P_{ru} \sim Dir(s \, \pi_r)`: an annotator's own shares of outcomes :math:`\pi` and the
    strength s are learned as in `annotrace.crowd.skill_prior`. Variational Bayes.

    Parameters
    ----------
    n_annotators : int
    unit : Tensor of int, shape (n_classes,)
    outcome : Tensor of int, shape (n_classes, n_classes)
        0 on the diagonal.
    shared : Tensor of bool, shape (n_outcomes,)
        Whether the pattern of an outcome is the same for all true classes of a unit.
    dtype : torch.dtype
    """

    unit: Tensor
    outcome: Tensor
    counts: Tensor
    share: Tensor
    strength: Tensor
    pattern: Tensor
    is_shared: Tensor

    def __init__(
        self,
        n_annotators: int,
        unit: Tensor,
        outcome: Tensor,
        shared: Tensor,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        self.n_annotators, self.n_classes = n_annotators, len(unit)
        n_units, n_outcomes = int(unit.max()) + 1, len(shared)
        blank = torch.empty(0, dtype=dtype)
        self.register_buffer("unit", unit.int())
        self.register_buffer("outcome", outcome.to(torch.uint8))
        self.register_buffer("is_shared", shared)
        self.register_buffer("counts", blank.new_zeros(n_annotators, n_units, n_outcomes))
        typical = blank.new_full((n_outcomes,), 0.3 / max(n_outcomes - 1, 1))
        typical[0] = 0.7
        self.typical = typical / typical.sum()
        self.register_buffer("share", self.typical.repeat(n_annotators, 1))
        self.register_buffer("strength", blank.new_tensor(4.0))
        self.register_buffer("pattern", self._normalize(blank.new_zeros(outcome.shape)))

    @classmethod
    def per_class(
        cls, n_annotators: int, n_classes: int, dtype: torch.dtype = torch.float64
    ) -> OutcomeStructure:
        """Return one skill per class and annotator, with the pool's pattern of errors."""
        wrong = 1 - torch.eye(n_classes, dtype=torch.uint8)
        return cls(n_annotators, torch.arange(n_classes), wrong, torch.zeros(2).bool(), dtype)

    @classmethod
    def taxonomy(
        cls, n_annotators: int, group: Tensor, dtype: torch.dtype = torch.float64
    ) -> OutcomeStructure:
        """Return confusion within groups of classes, with shared leakage outside.

        Parameters
        ----------
        n_annotators : int
        group : Tensor of int, shape (n_classes,)
        dtype : torch.dtype
        """
        outside = (group[:, None] != group).to(torch.uint8)
        outcome = (1 + outside).fill_diagonal_(0)
        return cls(n_annotators, group, outcome, torch.tensor([False, False, True]), dtype)

    def update(self, cells: ReportCells, counts: Tensor) -> None:
        """Learn outcomes, their prior and the pattern within an outcome."""
        n_outcomes, counts = self.share.shape[1], counts.double()
        unit = cells.annotator * self.counts.shape[1] + self.unit[cells.true]
        slot = unit * n_outcomes + self.outcome.flatten()[cells.place]
        found = torch.bincount(slot, counts, self.counts.numel())
        self.counts = found.view(self.counts.shape).to(self.counts.dtype)
        self._update_prior()
        pooled = torch.bincount(cells.place, counts, self.n_classes**2)
        self.pattern = self._normalize(pooled.view_as(self.pattern).to(self.counts.dtype))

    def _update_prior(self) -> None:
        """Take one step towards the shares and strength that make outcomes most probable."""
        unit, counts, alpha = self._counted()
        weighted = (digamma(counts + alpha) - digamma(alpha)).mul_(alpha).double()
        rate = digamma(counts.sum(1) + self.strength) - digamma(self.strength)
        own = (OWN_WEIGHT * self.typical.double()).repeat(self.n_annotators, 1)
        own.index_add_(0, unit // self.counts.shape[1], weighted)
        self.share = (own / own.sum(1, keepdim=True)).clamp(min=1e-4).to(self.share.dtype)
        self.share = self.share / self.share.sum(1, keepdim=True)
        strength = (weighted.sum() + VAGUE) / (rate.sum(dtype=torch.float64) + VAGUE)
        self.strength = strength.clamp(1e-2, LARGEST).to(self.share.dtype)

    def expected_logs(self, cells: ReportCells) -> Tensor:
        """Return the expected log-likelihood of cells, shape (n_cells,)."""
        unit, counts, alpha = self._counted()
        logs = digamma(counts + alpha) - digamma(counts.sum(1) + self.strength)[:, None]
        dense = logs.new_zeros(self.counts.shape).view(-1, self.share.shape[1])
        dense[unit] = logs
        of_cell = cells.annotator * self.counts.shape[1] + self.unit[cells.true]
        slot = of_cell * self.share.shape[1] + self.outcome.flatten()[cells.place]
        return dense.flatten()[slot] + self.pattern.flatten()[cells.place].log()

    def log_density(self) -> Tensor:
        """Return minus the divergence of outcomes, plus the log density of what is shared."""
        _, counts, alpha = self._counted()
        total = counts.sum(1)
        logs = digamma(counts + alpha) - digamma(total + self.strength)[:, None]
        cells = counts * logs - torch.lgamma(counts + alpha) + torch.lgamma(alpha)
        rows = torch.lgamma(total + self.strength) - torch.lgamma(self.strength)
        density = -cells.sum(dtype=torch.float64) - rows.sum(dtype=torch.float64)
        density += OWN_WEIGHT * (self.typical * self.share.log()).sum(dtype=torch.float64)
        occurs = self.pattern > 0
        logs = (self._pattern_prior() * self.pattern.clamp(min=1e-30).log())[occurs]
        return density + logs.sum(dtype=torch.float64) + log_vague(self.strength)

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator) at posterior means, (n_labels, n_classes)."""
        annotator, label = annotator.long(), label.long()
        outcome = self.outcome.t()[label].long()
        mean = self._means(annotator)[:, self.unit.long()]
        chosen = mean.gather(2, outcome[:, :, None]).squeeze(2)
        return chosen.log() + self.pattern.t()[label].log()

    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported]."""
        who = torch.arange(self.n_annotators) if annotators is None else annotators.long()
        mean = self._means(who)[:, self.unit.long()]
        outcome = self.outcome.long().expand(len(who), -1, -1)
        return mean.gather(2, outcome).mul_(self.pattern)

    def _means(self, annotators: Tensor) -> Tensor:
        """Return the posterior means of outcomes, shape (n, n_units, n_outcomes)."""
        mean = self.counts[annotators] + (self.strength * self.share[annotators])[:, None]
        # A class that is alone in its group has no error within it.
        possible = self._possible()
        mean = mean * possible
        return mean / mean.sum(2, keepdim=True)

    def _possible(self) -> Tensor:
        """Return which outcomes the classes of each unit have, shape (n_units, n_outcomes)."""
        found = torch.zeros(self.counts.shape[1:], dtype=torch.bool)
        for outcome in range(found.shape[1]):
            has = (self.outcome == outcome).any(1)
            found[self.unit.long(), outcome] = has
        return found

    def _counted(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the units with labels, their counts and prior parameters, (n, n_outcomes)."""
        flat = self.counts.view(-1, self.share.shape[1])
        unit = flat.sum(1).nonzero().squeeze(1)
        alpha = (self.share * self.strength)[unit // self.counts.shape[1]]
        return unit, flat[unit], alpha

    def _pattern_prior(self) -> Tensor:
        """Return the prior counts of the pattern: one label for each row of an outcome."""
        prior = torch.zeros_like(self.outcome, dtype=self.share.dtype)
        for outcome in range(self.share.shape[1]):
            within = self.outcome == outcome
            prior += PATTERN_WEIGHT * within / within.sum(1, keepdim=True).clamp(min=1)
        return prior

    def _normalize(self, pooled: Tensor) -> Tensor:
        """Return the shares of reports within each outcome of a true class."""
        counts = pooled.clone()
        pattern = self._pattern_prior()
        for outcome, shared in enumerate(self.is_shared.tolist()):
            within = self.outcome == outcome
            if shared:
                by_unit = counts.new_zeros(self.counts.shape[1], self.n_classes)
                by_unit.index_add_(0, self.unit, pooled * within)
                counts = torch.where(within, by_unit[self.unit.long()], counts)
            both = (counts + pattern) * within
            pattern = torch.where(
                within, both / both.sum(1, keepdim=True).clamp(min=1e-30), pattern
            )
        return pattern
