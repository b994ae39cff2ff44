r"""A Dirichlet prior of confusion matrices: own skill, shared pattern of errors, shared strength.

Row k of the matrix of annotator r is drawn from
:math:`Dir(s\,[d_r \delta_{kj} + (1 - d_r) q_{kj}])`: correct with the annotator's skill d, wrong as
the pool is, q, and as close to both as the strength s says. All are learned, see
`annotrace.crowd.dirichlet`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotrace.crowd.digamma import digamma
from annotrace.crowd.dirichlet import LARGEST, VAGUE, log_vague, weighted_counts
from annotrace.crowd.dirichlet import SMALLEST as SMALLEST_ALPHA
from annotrace.crowd.report_cells import ReportCells

# Labels' worth of prior on an annotator's own skill; 2, 4 and 10 gave the same.
SKILL_WEIGHT = 2.0
PATTERN_WEIGHT = 1e-2


class SkillPrior(nn.Module):
    """The prior of all matrices: own skill, shared pattern of errors, shared strength.

    Parameters
    ----------
    n_annotators, n_classes : int
    typical : float
        The initial skill, and that of an annotator without labels.
    dtype : torch.dtype
    """

    strength: Tensor
    skill: Tensor
    pattern: Tensor

    def __init__(
        self, n_annotators: int, n_classes: int, typical: float, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.typical = min(max(typical, 0.01), 0.99)
        self.wrong = ~torch.eye(n_classes, dtype=torch.bool)
        skill = torch.full((n_annotators,), self.typical, dtype=dtype)
        self.register_buffer("strength", torch.tensor(4.0, dtype=dtype))
        self.register_buffer("skill", skill)
        self.register_buffer("pattern", self.wrong.to(dtype) / max(n_classes - 1, 1))

    def normalize_pattern(self) -> None:
        """Make the rows of the pattern sum to one, as after new classes were added."""
        self.pattern = self.pattern / self.pattern.sum(1, keepdim=True).clamp(min=PATTERN_WEIGHT)

    def alpha(self, annotators: Tensor | None = None) -> Tensor:
        """Return the Dirichlet parameters, shape (n_annotators, n_classes, n_classes)."""
        skill = (self.skill if annotators is None else self.skill[annotators])[:, None, None]
        mean = torch.where(self.wrong, (1 - skill) * self.pattern, skill)
        return (self.strength * mean).clamp_(min=SMALLEST_ALPHA)

    def alpha_of_cells(self, cells: ReportCells) -> Tensor:
        """Return the Dirichlet parameters of cells, shape (n_cells,)."""
        wrong = (1 - self.skill).mul_(self.strength).index_select(0, cells.annotator)
        alpha = wrong.mul_(self.pattern.flatten().index_select(0, cells.place))
        skill = self.skill.index_select(0, cells.annotator.index_select(0, cells.correct))
        return alpha.index_copy_(0, cells.correct.long(), skill.mul_(self.strength)).clamp_(
            min=SMALLEST_ALPHA
        )

    def alpha_of_labels(self, annotator: Tensor, label: Tensor) -> Tensor:
        """Return the Dirichlet parameters of labels by true class, shape (n_labels, n_classes)."""
        skill = self.skill[annotator]
        mean = self.pattern.t()[label] * (1 - skill)[:, None]
        mean.scatter_(1, label.long()[:, None], skill[:, None])
        return mean.mul_(self.strength).clamp_(min=SMALLEST_ALPHA)

    def update(self, counts: Tensor) -> None:
        """Take one step towards the skills, pattern and strength that make counts most probable.

        Parameters
        ----------
        counts : Tensor of shape (n_annotators, n_classes, n_classes)
        """
        weighted, rate = weighted_counts(counts, self.alpha())
        correct = weighted.diagonal(dim1=1, dim2=2).sum(1)
        strength = (weighted.sum() + VAGUE) / (rate.sum() + VAGUE)
        self._maximize(correct, weighted.sum((1, 2)), weighted.sum(0), strength)

    def update_from_cells(
        self, cells: ReportCells, counts: Tensor, n_row: Tensor, alpha: Tensor | None = None
    ) -> None:
        """Take the same step from the counts of cells (n_cells,) and of their rows (n_rows,).

        `alpha` are the Dirichlet parameters of cells, where they are known.
        """
        if alpha is None:
            alpha = self.alpha_of_cells(cells)
        weighted = (digamma(counts + alpha) - digamma(alpha)).mul_(alpha).double()
        right = weighted.index_select(0, cells.correct)
        who = cells.annotator.index_select(0, cells.correct)
        correct = torch.bincount(who, right, len(self.skill))
        total = torch.bincount(cells.annotator, weighted, len(self.skill))
        pattern = torch.bincount(cells.place, weighted, self.pattern.numel())
        rate = (digamma(n_row + self.strength) - digamma(self.strength)).sum()
        by_cell = pattern.view_as(self.pattern).to(counts)
        strength = (total.to(counts).sum() + VAGUE) / (rate + VAGUE)
        self._maximize(correct.to(counts), total.to(counts), by_cell, strength)

    def _maximize(self, correct: Tensor, total: Tensor, by_cell: Tensor, strength: Tensor) -> None:
        skill = (correct + SKILL_WEIGHT * self.typical) / (total + SKILL_WEIGHT)
        self.skill = skill.clamp(1e-3, 1 - 1e-3)
        self.pattern = (by_cell + PATTERN_WEIGHT) * self.wrong
        self.normalize_pattern()
        self.strength = strength.clamp(1e-2, LARGEST)

    def log_density(self) -> Tensor:
        """Return the log density of skills, pattern and strength, up to a constant."""
        correct, wrong = self.skill.log().sum(), (1 - self.skill).log().sum()
        skill = SKILL_WEIGHT * (self.typical * correct + (1 - self.typical) * wrong)
        pattern = PATTERN_WEIGHT * self.pattern[self.wrong].log().sum()
        return (skill + pattern).double() + log_vague(self.strength)
