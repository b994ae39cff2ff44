r"""Confusion within groups of classes, as a layer that learns by gradient descent.

.. math:: A^{(r)}_{kj} = P_{rk}[o(k, j)] \, Q_{kj}

The outcome o of a report is correct, wrong within the group of the true class, or outside it. The
shares of outcomes P are an annotator's own in each group; the pattern Q within an outcome is the
same for all annotators, and outside also for all classes of a group.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.factored_confusion import SKILLS, FactoredConfusion
from annotrace.crowd.safe_math import at_least_float32

CORRECT, WITHIN, OUTSIDE = range(3)
# The logit of what cannot be; an infinite one has no gradient.
IMPOSSIBLE = -1e4


class TaxonomyConfusion(FactoredConfusion):
    r"""Confusion within groups of classes, with shared leakage outside.

    The logits of being correct and of leaving the group, against an error within it, are

    .. math:: b_k + s_r + s_{ru} \quad\text{and}\quad c_u + l_r + l_{ru}

    for class k of group u. The annotator's own s and l start at 0. A step normalises patterns of
    classes x classes once for all labels.

    Parameters
    ----------
    n_annotators, n_classes, diagonal, lr_scale, frequency
        As in `FactoredConfusion`.
    group : Tensor of int, shape (n_classes,)
        From 0, none left out.
    """

    member: Tensor
    outcome: Tensor
    offset: Tensor

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        group: Tensor,
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        frequency: Tensor | None = None,
    ) -> None:
        self.n_groups = int(group.max()) + 1
        super().__init__(
            n_annotators,
            n_classes,
            2 + 2 * self.n_groups,
            diagonal=diagonal,
            lr_scale=lr_scale,
            frequency=frequency,
        )
        member = F.one_hot(group.long(), self.n_groups).float()
        is_outside = (group[:, None] != group).long()
        outcome = (WITHIN + is_outside).fill_diagonal_(CORRECT)
        possible = F.one_hot(outcome, 3).amax(1)
        # An error may be of two kinds, or of one: then as probable as two are together.
        n_kinds = possible[:, WITHIN:].sum(1, keepdim=True).clamp(min=1)
        is_error = torch.tensor([0.0, 1.0, 1.0], device=group.device)
        offset = torch.where(possible == 1, -n_kinds.float().log() * is_error, IMPOSSIBLE)
        for name, tensor in {"member": member, "outcome": outcome, "offset": offset}.items():
            self.register_buffer(name, tensor, persistent=False)
        self.leak = nn.Parameter(torch.zeros(self.n_groups))
        self.within = nn.Parameter(torch.zeros(n_classes, n_classes))
        self.outside = nn.Parameter(torch.zeros(self.n_groups, n_classes))

    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass."""
        with torch.autocast(self.weight.device.type, enabled=False):
            label = label.long()
            logs = self._log_outcomes(self.rows(annotator))
            outcome = self.outcome.t().index_select(0, label)
            found = logs.gather(2, outcome[:, :, None]).squeeze(2)
            # The backward pass of an embedding adds up in the same order every time.
            pattern = F.embedding(label, self._log_pattern().t())
            return found + pattern, logs[:, :, CORRECT].exp().sum(1)

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from the mean diagonals of matrices (n_annotators, n_classes, n_classes)."""
        skill = matrices.diagonal(dim1=1, dim2=2).mean(1).clamp(*SKILLS)
        self.weight.zero_()
        self.weight[:, 0] = skill.logit().to(self.weight) - self.skill.mean()

    def _log_outcomes(self, own: Tensor) -> Tensor:
        """Return log p(outcome | true class) of labels' annotators, (n_labels, n_classes, 3)."""
        member = self.member.t().to(own)
        overall, by_group = own[:, :2], own[:, 2:]
        skill, leak = by_group.chunk(2, 1)
        correct = overall[:, :1] + skill @ member + at_least_float32(self.skill)
        outside = overall[:, 1:] + (leak + at_least_float32(self.leak)) @ member
        logits = torch.stack([correct, torch.zeros_like(correct), outside], 2)
        return (logits + self.offset.to(own)).log_softmax(2)

    def _log_pattern(self) -> Tensor:
        """Return the logarithms of the shares of reports within each outcome, [true, reported]."""
        within, outside = at_least_float32(self.within), at_least_float32(self.outside)
        member = self.member.to(within)
        total = within.masked_fill(self.outcome != WITHIN, IMPOSSIBLE).logsumexp(1, keepdim=True)
        leaked = outside.masked_fill(member.t() == 1, IMPOSSIBLE).logsumexp(1, keepdim=True)
        logs = torch.where(self.outcome == WITHIN, within - total, member @ (outside - leaked))
        return logs.masked_fill(self.outcome == CORRECT, 0.0)
