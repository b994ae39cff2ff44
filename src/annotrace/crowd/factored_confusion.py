r"""Confusion layers whose step costs nothing that grows with annotators or with classes squared.

A layer has a row of parameters for each annotator, of which a batch touches those of its labels
(sparse gradients), and parameters that all share.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.annotator_model import check_diagonal, check_integers, sum_by_blocks
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.low_rank_likelihood import low_rank_log_likelihood
from annotrace.crowd.safe_math import at_least_float32
from annotrace.crowd.traced_model import TracedModel
from annotrace.parameters import AtLeastTwo, Count, check_value

DIAGONAL = 0.7
# Of matrices to start from: an annotator who is never right, or never wrong, would not learn.
SKILLS = 0.02, 0.98
RANK = 8


class FactoredConfusion(TracedModel):
    """A confusion layer with one row of parameters per annotator.

    Parameters
    ----------
    n_annotators, n_classes : int
    width : int
        Parameters of an annotator, which start at 0.
    diagonal : float, optional
        The initial probability of a correct label.
    lr_scale, frequency
        As in `Confusion`.
    """

    sparse = True

    weight: nn.Parameter

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        width: int,
        *,
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        frequency: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_value("n_annotators", n_annotators, Count)
        check_value("n_classes", n_classes, AtLeastTwo)
        self.n_annotators, self.n_classes, self.lr_scale = n_annotators, n_classes, lr_scale
        self.weight = nn.Parameter(torch.zeros(n_annotators, width))
        diagonal = DIAGONAL if diagonal is None else diagonal
        check_diagonal(diagonal, n_classes)
        self.skill = nn.Parameter(torch.tensor(diagonal).logit().repeat(n_classes))
        self._set_frequency(frequency)

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), shape (n_labels, n_classes)."""
        check_integers(annotator=annotator, label=label)
        return self.log_likelihood_and_traces(annotator, label)[0]

    @torch.no_grad()
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] without gradient."""
        label = torch.arange(self.n_classes, device=self.device)
        found = [
            self.log_likelihood(who.repeat_interleave(len(label)), label.repeat(len(who)))
            for who in (self.blocks() if annotators is None else [annotators])
        ]
        return torch.cat(found).exp_().view(-1, len(label), len(label)).transpose(1, 2)

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes)."""
        if torch.is_grad_enabled():
            return super().item_log_likelihood(labels)
        return sum_by_blocks(self, labels)

    def mean_of_all_traces(self) -> Tensor:
        """Return the mean trace over all annotators, by blocks of annotators, shape ()."""
        traces = [
            self.log_likelihood_and_traces(who, torch.zeros_like(who))[1] for who in self.blocks()
        ]
        return torch.cat(traces).mean()

    def rows(self, annotator: Tensor) -> Tensor:
        """Return the parameters of each label's annotator, (n_labels, width)."""
        return at_least_float32(F.embedding(annotator, self.weight, sparse=True))


class LowRankConfusion(FactoredConfusion):
    r"""The pool's skills and errors, plus a deviation of rank k for each annotator.

    An annotator is correct with a skill, and otherwise reports a class of one of k groups:

    .. math:: A^{(r)}_{kj} = d_{rk} \delta_{kj} + (1 - d_{rk}) \sum_g \pi_{rk}[g] \, V_{gj}

    with :math:`d_{rk} = \sigma(b_k + s_r)` and :math:`\pi_{rk}[g] \propto U_{kg} e^{m_{rg}}`. U and
    V have classes x k parameters and are shared, as b is; s and m are the annotator's own.

    Parameters
    ----------
    n_annotators, n_classes, diagonal, lr_scale, frequency
        As in `FactoredConfusion`.
    rank : int
        The number of groups; at most the number of classes is used.
    """

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        rank: int = RANK,
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        frequency: Tensor | None = None,
    ) -> None:
        rank = min(rank, n_classes)
        super().__init__(
            n_annotators,
            n_classes,
            rank + 1,
            diagonal=diagonal,
            lr_scale=lr_scale,
            frequency=frequency,
        )
        generator = torch.Generator().manual_seed(0)
        self.group = nn.Parameter(torch.randn(n_classes, rank, generator=generator) / 2)
        self.report = nn.Parameter(torch.randn(rank, n_classes, generator=generator) / 2)

    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass."""
        skill, group, report = map(at_least_float32, (self.skill, self.group, self.report))
        return low_rank_log_likelihood(self.rows(annotator), skill, group, report, label.long())

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from the mean diagonals of matrices (n_annotators, n_classes, n_classes)."""
        skill = matrices.diagonal(dim1=1, dim2=2).mean(1).clamp(*SKILLS)
        self.weight[:, 0] = skill.logit().to(self.weight) - self.skill.mean()


class PerClassConfusion(FactoredConfusion):
    r"""One skill per class and annotator, with the pool's pattern of errors.

    .. math:: A^{(r)}_{kj} = d_{rk} \delta_{kj} + (1 - d_{rk}) q_{kj}, \quad
        d_{rk} = \sigma(b_k + s_{rk})

    The pattern q has classes x classes parameters, which a step normalises once for all labels.

    Parameters
    ----------
    n_annotators, n_classes, diagonal, lr_scale, frequency
        As in `FactoredConfusion`.
    """

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        frequency: Tensor | None = None,
    ) -> None:
        super().__init__(
            n_annotators,
            n_classes,
            n_classes + 1,
            diagonal=diagonal,
            lr_scale=lr_scale,
            frequency=frequency,
        )
        self.pattern = nn.Parameter(torch.zeros(n_classes, n_classes))

    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass."""
        own = self.rows(annotator)
        logits = own[:, :1] + own[:, 1:] + self.skill
        same = torch.eye(self.n_classes, dtype=torch.bool, device=label.device)
        pattern = at_least_float32(self.pattern)
        total = pattern.masked_fill(same, -torch.inf).logsumexp(1)
        wrong = F.logsigmoid(-logits) + pattern.t().index_select(0, label) - total
        place = label.long()[:, None]
        logs = wrong.scatter(1, place, F.logsigmoid(logits.gather(1, place)))
        return logs, torch.sigmoid(logits).sum(1)

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from the diagonals of matrices (n_annotators, n_classes, n_classes)."""
        diagonal = matrices.diagonal(dim1=1, dim2=2).clamp(*SKILLS)
        self.weight[:, 0] = 0
        self.weight[:, 1:] = diagonal.logit().to(self.weight) - self.skill
