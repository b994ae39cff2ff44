r"""Confusion layers whose step costs nothing that grows with annotators or with classes squared.

A layer has a row of parameters for each annotator, of which a batch touches those of its labels
(sparse gradients), and parameters that all share.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.annotator_model import AnnotatorModel, check_integers, check_shape
from annotrace.crowd.confusion import trace_weight
from annotrace.crowd.safe_math import at_least_float32
from annotrace.errors import InputError
from annotrace.parameters import AtLeastTwo, Count, check_value

SMALLEST = 1e-12
DIAGONAL = 0.7
RANK = 8
# Cells of matrices that are made at a time.
BLOCK = 2**22


class FactoredConfusion(AnnotatorModel):
    """A confusion layer with one row of parameters per annotator.

    Parameters
    ----------
    n_annotators, n_classes : int
    width : int
        Parameters of an annotator, which start at 0.
    lr_scale : float
        As in `Confusion`.
    frequency : Tensor of shape (n_annotators,), optional
        As in `Confusion`; without it `mean_trace` goes through all annotators.
    """

    sparse = True

    weight: nn.Parameter
    _trace_weight: Tensor | None

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        width: int,
        *,
        lr_scale: float = 10.0,
        frequency: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_value("n_annotators", n_annotators, Count)
        check_value("n_classes", n_classes, AtLeastTwo)
        self.n_annotators, self.n_classes, self.lr_scale = n_annotators, n_classes, lr_scale
        self.weight = nn.Parameter(torch.zeros(n_annotators, width))
        if frequency is not None:
            check_shape("frequency", frequency, (n_annotators,))
        self.register_buffer("_trace_weight", trace_weight(frequency), persistent=False)

    @abstractmethod
    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass.

        Returns
        -------
        log_likelihood : Tensor of shape (n_labels, n_classes)
        traces : Tensor of shape (n_labels,)
        """

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), shape (n_labels, n_classes)."""
        check_integers(annotator=annotator, label=label)
        return self.log_likelihood_and_traces(annotator, label)[0]

    @torch.no_grad()
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] without gradient."""
        everyone = torch.arange(self.n_annotators, device=self.device)
        who = everyone if annotators is None else annotators
        label = torch.arange(self.n_classes, device=self.device)
        size = max(BLOCK // self.n_classes**2, 1)
        found = [
            self.log_likelihood(part.repeat_interleave(len(label)), label.repeat(len(part)))
            for part in who.split(size)
        ]
        return torch.cat(found).exp().view(len(who), len(label), -1).transpose(1, 2)

    def mean_trace(self, annotator: Tensor | None = None, n_rows: int | None = None) -> Tensor:
        """Return the mean trace of the confusion matrices, or its estimate from a batch."""
        if annotator is not None and n_rows is not None and self._trace_weight is not None:
            traces = self.log_likelihood_and_traces(annotator, torch.zeros_like(annotator))[1]
            return torch.dot(traces, self.trace_weights(annotator, n_rows))
        everyone = torch.arange(self.n_annotators, device=self.device)
        traces = self.log_likelihood_and_traces(everyone, torch.zeros_like(everyone))[1]
        return traces.mean()

    def trace_weights(self, annotator: Tensor, n_rows: int) -> Tensor:
        """Return the weight of each label's trace in the mean of all, (n_labels,)."""
        if self._trace_weight is None:
            raise InputError(
                "Estimating the mean trace from a batch requires the label frequencies: give "
                "`frequency=labels_per_annotator / n_items`."
            )
        return at_least_float32(self._trace_weight.index_select(0, annotator)) / n_rows

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
    n_annotators, n_classes, lr_scale, frequency
        As in `FactoredConfusion`.
    rank : int
        The number of groups; at most the number of classes is used.
    diagonal : float, optional
        The initial probability of a correct label.
    **others
        Of other structures; ignored.
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
        **others: Any,
    ) -> None:
        rank = min(rank, n_classes)
        super().__init__(n_annotators, n_classes, rank + 1, lr_scale=lr_scale, frequency=frequency)
        start = torch.tensor(diagonal or DIAGONAL).logit()
        self.skill = nn.Parameter(start.repeat(n_classes))
        generator = torch.Generator().manual_seed(0)
        self.group = nn.Parameter(torch.randn(n_classes, rank, generator=generator) / 2)
        self.report = nn.Parameter(torch.randn(rank, n_classes, generator=generator) / 2)

    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass."""
        own = self.rows(annotator)
        group = at_least_float32(self.group).softmax(1)
        report = at_least_float32(self.report).softmax(1)
        preferred = own[:, 1:].softmax(1)
        share = 1 / (preferred @ group.t())
        wrong = torch.sigmoid(-(own[:, :1] + self.skill))
        scaled = wrong * share
        reported = (preferred * report.t()[label]) @ group.t() * scaled
        place = label.long()[:, None]
        right = reported.gather(1, place) + 1 - wrong.gather(1, place)
        by_chance = (preferred @ (group.t() * report)) * scaled
        traces = self.n_classes - wrong.sum(1) + by_chance.sum(1)
        logs = reported.scatter(1, place, right).clamp_min(SMALLEST).log()
        return logs, traces

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from the mean diagonals of matrices (n_annotators, n_classes, n_classes)."""
        skill = matrices.diagonal(dim1=1, dim2=2).mean(1).clamp(0.02, 0.98)
        self.weight[:, 0] = skill.logit().to(self.weight) - self.skill.mean()


class PerClassConfusion(FactoredConfusion):
    r"""One skill per class and annotator, with the pool's pattern of errors.

    .. math:: A^{(r)}_{kj} = d_{rk} \delta_{kj} + (1 - d_{rk}) q_{kj}, \quad
        d_{rk} = \sigma(b_k + s_{rk})

    The pattern q has classes x classes parameters, which a step normalises once for all labels.

    Parameters
    ----------
    n_annotators, n_classes, lr_scale, frequency
        As in `FactoredConfusion`.
    diagonal : float, optional
        The initial probability of a correct label.
    **others
        Of other structures; ignored.
    """

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        frequency: Tensor | None = None,
        **others: Any,
    ) -> None:
        super().__init__(
            n_annotators, n_classes, n_classes + 1, lr_scale=lr_scale, frequency=frequency
        )
        start = torch.tensor(diagonal or DIAGONAL).logit()
        self.skill = nn.Parameter(start.repeat(n_classes))
        self.pattern = nn.Parameter(torch.zeros(n_classes, n_classes))

    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass."""
        own = self.rows(annotator)
        logits = own[:, :1] + own[:, 1:] + self.skill
        same = torch.eye(self.n_classes, dtype=torch.bool, device=label.device)
        pattern = at_least_float32(self.pattern).masked_fill(same, -torch.inf).log_softmax(1)
        errors = pattern.masked_fill(same, 0.0).t()[label]
        place = label.long()[:, None]
        wrong = F.logsigmoid(-logits) + errors
        logs = wrong.scatter(1, place, F.logsigmoid(logits.gather(1, place)))
        return logs, torch.sigmoid(logits).sum(1)

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from the diagonals of matrices (n_annotators, n_classes, n_classes)."""
        diagonal = matrices.diagonal(dim1=1, dim2=2).clamp(0.02, 0.98)
        self.weight[:, 0] = 0
        self.weight[:, 1:] = diagonal.logit().to(self.weight) - self.skill
