r"""Structures of confusion matrices that EM learns from the counts of cells.

A structure has far fewer parameters than annotators x classes x classes, learns them from a list of
cells [annotator, true, reported] and gives the likelihood of such cells. Whole matrices are made
for a block of annotators at a time, if at all.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from annotrace.crowd.annotator_model import BLOCK, AnnotatorModel, sum_by_blocks
from annotrace.crowd.digamma import digamma
from annotrace.crowd.dirichlet import LARGEST, VAGUE, log_vague
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.report_cells import ReportCells
from annotrace.crowd.sums import add_to_groups

# Labels' worth of prior on an annotator's own outcomes, and on each row of a shared pattern.
OWN_WEIGHT, PATTERN_WEIGHT = 2.0, 1.0
SMALLEST = 1e-30


class CellStructure(AnnotatorModel):
    """An annotator model that EM learns by the cells that labels touch."""

    @abstractmethod
    def update(self, cells: ReportCells, counts: Tensor) -> None:
        """Raise the objective of counts (n_cells,): one M-step."""

    @abstractmethod
    def expect(self, cells: ReportCells) -> tuple[Tensor, Tensor]:
        """Return what an E-step needs, by the parameters that `update` learned from these cells.

        Returns
        -------
        logs : Tensor of shape (n_cells,)
            The log-likelihood of cells.
        log_density : Tensor of shape ()
            What the objective has beside the log evidence.
        """

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes)."""
        return sum_by_blocks(self, labels)

    def mean_trace(self, annotator: Tensor | None = None, n_rows: int | None = None) -> Tensor:
        """Return the mean trace of the confusion matrices, by blocks of annotators, shape ()."""
        traces = [self.matrices(who).diagonal(dim1=1, dim2=2).sum() for who in self.blocks()]
        return torch.stack(traces).sum() / self.n_annotators


@dataclass(frozen=True, eq=False)
class CountedUnits:
    """The units of annotators that labels touch.

    Attributes
    ----------
    code : Tensor of int64, shape (n_counted,)
        annotator * n_units + unit, ascending.
    annotator : Tensor of int, shape (n_counted,)
    slot : Tensor of int, shape (n_cells,)
        Where each cell is counted in an array (n_outcomes, n_counted).
    """

    code: Tensor
    annotator: Tensor
    slot: Tensor


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
        self.register_buffer("pattern", self._pattern_prior / PATTERN_WEIGHT)

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
        units, counts = self._units(cells), counts.double()
        n_outcomes = self.share.shape[1]
        found = torch.bincount(units.slot, counts, n_outcomes * len(units.code))
        own = found.view(n_outcomes, -1).to(self.counts.dtype)
        self.counts.zero_().view(-1, n_outcomes)[units.code] = own.t()
        self._update_prior(units, own)
        self.pattern = self._learn_pattern(cells, counts)

    def _update_prior(self, units: CountedUnits, counts: Tensor) -> None:
        """Take one step towards the shares and strength that make outcomes most probable."""
        alpha = (self.share * self.strength).t().contiguous()
        of_unit, before = (
            each.index_select(1, units.annotator) for each in (alpha, digamma(alpha))
        )
        weighted = (digamma(counts + of_unit) - before).mul_(of_unit).double()
        rate = digamma(counts.sum(0) + self.strength) - digamma(self.strength)
        own = [torch.bincount(units.annotator, part, self.n_annotators) for part in weighted]
        share = torch.stack(own, 1) + OWN_WEIGHT * self.typical
        self.share = (share / share.sum(1, keepdim=True)).clamp(min=1e-4).to(self.share.dtype)
        self.share = self.share / self.share.sum(1, keepdim=True)
        strength = (weighted.sum() + VAGUE) / (rate.sum(dtype=torch.float64) + VAGUE)
        self.strength = strength.clamp(1e-2, LARGEST).to(self.share.dtype)

    def expect(self, cells: ReportCells) -> tuple[Tensor, Tensor]:
        """Return the expected log-likelihood of cells, and the rest of the lower bound.

        The rest is minus the divergence of outcomes, plus the log density of what is shared.
        """
        units, alpha = self._units(cells), (self.share * self.strength).t().contiguous()
        counts = self.counts.view(-1, len(alpha)).index_select(0, units.code).t().contiguous()
        raised = alpha.index_select(1, units.annotator).add_(counts)
        total = counts.sum(0) + self.strength
        logs = digamma(raised) - digamma(total)
        log_pattern = self.pattern.log()

        before = torch.lgamma(alpha).index_select(1, units.annotator)
        lost = counts.mul_(logs).sub_(raised.lgamma_()).add_(before).sum(dtype=torch.float64)
        lost += (torch.lgamma(total) - torch.lgamma(self.strength)).sum(dtype=torch.float64)
        density = OWN_WEIGHT * (self.typical * self.share.log()).sum(dtype=torch.float64) - lost
        density += (self._pattern_prior * log_pattern).sum(dtype=torch.float64)
        by_cell = logs.flatten().index_select(0, units.slot)
        by_cell += log_pattern.flatten().index_select(0, cells.place)
        return by_cell, density + log_vague(self.strength)

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes).

        Every report is first taken for the last outcome, that of most true classes.
        """
        last = self.share.shape[1] - 1
        logs = self._means().clamp_(min=SMALLEST).log_()
        total = labels.sum_rows(self.pattern.t().log(), labels.label)
        lasts = labels.sum_rows(logs[:, :, last].contiguous(), labels.annotator)
        total += lasts.index_select(1, self.unit)
        logs -= logs[:, :, last:].clone()

        label, true = (self.outcome.t() < last).nonzero(as_tuple=True)
        first = torch.searchsorted(label, torch.arange(self.n_classes + 1))
        n_others = first.diff()
        size = max(BLOCK // int(n_others.max()), 1)
        parts = (part.split(size) for part in (labels.row, labels.annotator, labels.label))
        for row, annotator, given in zip(*parts, strict=True):
            n_own = n_others[given]
            of_label = torch.repeat_interleave(n_own)
            start = (first[given] - n_own.cumsum(0) + n_own).index_select(0, of_label)
            place = start + torch.arange(len(of_label))
            k = true[place]
            outcome = self.outcome[k, label[place]].long()
            found = logs[annotator[of_label].long(), self.unit[k].long(), outcome]
            add_to_groups(total.view(-1), found, row[of_label].long() * self.n_classes + k)
        return total

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator) at posterior means, (n_labels, n_classes)."""
        annotator, label = annotator.long(), label.long()
        outcome = self.outcome.t()[label].long()
        mean = self._means(annotator)[:, self.unit.long()]
        chosen = mean.gather(2, outcome[:, :, None]).squeeze(2)
        return chosen.mul_(self.pattern.t()[label]).log_()

    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported]."""
        who = torch.arange(self.n_annotators) if annotators is None else annotators.long()
        mean = self._means(who)[:, self.unit.long()]
        outcome = self.outcome.long().expand(len(who), -1, -1)
        return mean.gather(2, outcome).mul_(self.pattern)

    def _means(self, annotators: Tensor | None = None) -> Tensor:
        """Return the posterior means of outcomes, shape (n, n_units, n_outcomes)."""
        who = slice(None) if annotators is None else annotators
        mean = self.counts[who] + (self.strength * self.share[who])[:, None]
        mean *= self._possible
        return mean.div_(mean.sum(2, keepdim=True))

    @cached_property
    def _possible(self) -> Tensor:
        """Which outcomes the classes of each unit have, shape (n_units, n_outcomes).

        A class that is alone in its group has no error within it.
        """
        found = torch.zeros(self.counts.shape[1:], dtype=torch.bool)
        for outcome, within in enumerate(self._within):
            found[self.unit.long(), outcome] = within.any(1)
        return found

    @cached_property
    def _pattern_prior(self) -> Tensor:
        """The prior counts of the pattern: one label for each row of an outcome."""
        prior = torch.zeros_like(self.outcome, dtype=self.share.dtype)
        for within in self._within:
            own = within.to(prior.dtype)
            prior += PATTERN_WEIGHT * own / own.sum(1, keepdim=True).clamp_(min=1)
        return prior

    def _units(self, cells: ReportCells) -> CountedUnits:
        """Return the units with labels; they are kept as long as the cells."""
        if "units" not in cells.derived:
            cells.derived["units"] = self._find_units(cells)
        found: CountedUnits = cells.derived["units"]
        return found

    def _find_units(self, cells: ReportCells) -> CountedUnits:
        n_units = self.counts.shape[1]
        of_cell = cells.annotator.long() * n_units + self.unit[cells.true]
        code, place = torch.unique(of_cell, return_inverse=True)
        slot = self.outcome.flatten()[cells.place].long() * len(code) + place
        return CountedUnits(code, (code // n_units).int(), slot.int())

    @cached_property
    def _within(self) -> list[Tensor]:
        """Which reports are of each outcome, by true class: shapes (n_classes, n_classes)."""
        return [self.outcome == outcome for outcome in range(self.share.shape[1])]

    def _learn_pattern(self, cells: ReportCells, counts: Tensor) -> Tensor:
        """Return the shares of reports within each outcome of a true class."""
        n, n_outcomes = self.n_classes, self.share.shape[1]
        pattern = torch.bincount(cells.place, counts, n**2).view(n, n).to(self.share.dtype)
        slot = cells.true.long() * n_outcomes + self.outcome.flatten()[cells.place]
        total = torch.bincount(slot, counts, n * n_outcomes).view(n, n_outcomes)
        for outcome in self.is_shared.nonzero().flatten().tolist():
            by_unit = [
                part.new_zeros(self.counts.shape[1], part.shape[1]).index_add_(0, self.unit, part)
                for part in (pattern, total)
            ]
            shared = by_unit[0].index_select(0, self.unit)
            pattern = torch.where(self._within[outcome], shared, pattern)
            total[:, outcome] = by_unit[1][:, outcome].index_select(0, self.unit)
        scale = (1 / (total + PATTERN_WEIGHT)).to(pattern.dtype)
        factor = scale[:, :1]
        for outcome in range(1, n_outcomes):
            factor = torch.where(self._within[outcome], scale[:, outcome, None], factor)
        return pattern.add_(self._pattern_prior).mul_(factor)
