"""Confusion matrices of annotators as a layer.

``confusion[annotator, true, reported]``, rows sum to one. The paper's equations write the
transpose; its code listing, and this library, write it so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.errors import InputError
from annotrace.models.safe_math import (
    at_least_float32,
    inverse_softplus,
    log_normalize,
    log_softplus,
    log_softplus_and_slope,
    refuse_second_derivatives,
)
from annotrace.parameters import AtLeastTwo, Count, check_value

Parametrization: TypeAlias = Literal["softplus", "softmax"]
FAR_DOWN = 50.0


class Confusion(nn.Module):
    """One confusion matrix an annotator.

    Parameters
    ----------
    n_annotators, n_classes : int
    parametrization : {"softplus", "softmax"}
        How free weights become rows that sum to one: softplus, then divided by the row's sum, as
        in the paper's listing; or a softmax of each row.
    diagonal : float, optional
        The starting probability of a right label, between 1 / n_classes and 1. By default the
        paper's weights 6I - 5: .956 at ten classes with softplus, .978 with softmax.
    lr_scale : float
        How much faster than the network the matrices should learn; read by `parameter_groups`.
        At one rate for both the network memorises the noise before the matrices have moved.
    sparse : bool
        Touch only the annotators of a batch: gradients are sparse, as those of
        ``nn.Embedding(sparse=True)``, and are stepped by `RowAdam`. For many annotators.
    pool : bool
        Learn weights that all annotators share, and for each the deviation from them: one with
        few labels borrows from the others.
    frequency : Tensor of shape (n_annotators,), optional
        Labels of each annotator divided by the number of items: what a sparse layer needs to
        estimate the mean trace from a batch. Annotators at 0 have no part in the mean.

    Examples
    --------
    >>> layer = Confusion(n_annotators=3, n_classes=2, diagonal=0.8)
    >>> layer.matrices()[0]
    tensor([[0.8000, 0.2000],
            [0.2000, 0.8000]])
    """

    weight: nn.Parameter
    shared: nn.Parameter | None
    _trace_share: Tensor | None

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        *,
        parametrization: Parametrization = "softplus",
        diagonal: float | None = None,
        lr_scale: float = 10.0,
        sparse: bool = False,
        pool: bool = False,
        frequency: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_value("n_annotators", n_annotators, Count)
        check_value("n_classes", n_classes, AtLeastTwo)
        check_value("parametrization", parametrization, Parametrization)
        self.parametrization = parametrization
        self.lr_scale = lr_scale
        self.sparse = sparse
        start = _starting_weights(n_classes, parametrization, diagonal)
        own = torch.zeros_like(start) if pool else start
        self.weight = nn.Parameter(own.repeat(n_annotators, 1, 1))
        self.shared = nn.Parameter(start) if pool else None
        if frequency is not None:
            _check_shape("frequency", frequency, (n_annotators,))
        self.register_buffer("_trace_share", _trace_share(frequency), persistent=False)

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        return self.weight.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.weight.shape[1]

    def extra_repr(self) -> str:
        """Say what is in the layer, for its repr."""
        return (
            f"{self.n_annotators}, {self.n_classes}, parametrization={self.parametrization!r}, "
            f"sparse={self.sparse}"
        )

    def log_matrices(self) -> Tensor:
        """Give the logarithms of all matrices, shape (n_annotators, n_classes, n_classes)."""
        weight = self.weight if self.shared is None else self.weight + self.shared
        return _log_rows(at_least_float32(weight), self.parametrization)

    @torch.no_grad()
    def matrices(self) -> Tensor:
        """Give all matrices, shape (n_annotators, n_classes, n_classes), without gradient."""
        return self.log_matrices().exp()

    def log_columns(self, annotator: Tensor, label: Tensor) -> Tensor:
        """Give the log-probability of each label under each true class.

        Parameters
        ----------
        annotator, label : LongTensor of shape (n_labels,)

        Returns
        -------
        Tensor of shape (n_labels, n_classes)
        """
        if self.sparse:
            return self.log_columns_and_traces(annotator, label)[0]
        check_whole_numbers(annotator=annotator, label=label)
        return self.log_matrices()[annotator, :, label]

    def log_columns_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Give `log_columns`, and the trace of each label's annotator, in one pass.

        Returns
        -------
        log_columns : Tensor of shape (n_labels, n_classes)
        traces : Tensor of shape (n_labels,)
        """
        check_whole_numbers(annotator=annotator, label=label)
        return _BatchColumns.apply(  # type: ignore[no-any-return,no-untyped-call]
            self.weight, self.shared, annotator, label, self.parametrization
        )

    def mean_trace(self, annotator: Tensor | None = None, n_rows: int | None = None) -> Tensor:
        """Give the mean over annotators of the trace of their matrices.

        Parameters
        ----------
        annotator : LongTensor of shape (n_labels,), optional
            The annotators of a batch's labels: the mean over all annotators that have labels is
            then estimated from these alone, without bias. A sparse layer needs it.
        n_rows : int, optional
            The items of the batch; needed with `annotator`.
        """
        if annotator is None:
            if self.sparse:
                raise InputError(
                    "A sparse `Confusion` needs the batch: `mean_trace(annotator, n_rows)`."
                )
            return self.log_matrices().diagonal(dim1=1, dim2=2).exp().sum(1).mean()
        if n_rows is None:
            raise InputError("`mean_trace(annotator)` needs `n_rows`, the items of the batch.")
        traces = self.log_columns_and_traces(annotator, torch.zeros_like(annotator))[1]
        return torch.dot(traces, self.trace_shares(annotator, n_rows))

    def trace_shares(self, annotator: Tensor, n_rows: int) -> Tensor:
        """Give the weight of each label's trace in the estimate of the mean trace.

        An annotator with n labels among N items appears n B / N times in a batch of B items, in
        the mean; each time it brings N / (n B R) of its trace, which makes 1 / R.

        Returns
        -------
        Tensor of shape (n_labels,)
        """
        if self._trace_share is None:
            raise InputError(
                "The mean trace of a batch needs to know how often each annotator labels: give "
                "`Confusion(..., frequency=labels_per_annotator / n_items)`."
            )
        return at_least_float32(self._trace_share.index_select(0, annotator)) / n_rows

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Set all matrices, shape (n_annotators, n_classes, n_classes); zeros become 1e-6."""
        _check_shape("matrices", matrices, self.weight.shape)
        log = matrices.to(self.weight).clamp_min(1e-6).log()
        # Any multiple of a row gives the same matrix; the paper's start has softplus(1) at the top.
        scaled = (log - log.amax(-1, keepdim=True)).exp() * math.log1p(math.e)
        softplus = scaled + torch.log(-torch.expm1(-scaled))
        weight = log if self.parametrization == "softmax" else softplus
        if self.shared is not None:
            self.shared.copy_(weight.mean(0))
            weight = weight - self.shared
        self.weight.copy_(weight)


def _starting_weights(
    n_classes: int, parametrization: Parametrization, diagonal: float | None
) -> Tensor:
    eye = torch.eye(n_classes)
    if diagonal is None:
        return 6 * eye - 5
    if not 1 / n_classes <= diagonal < 1:
        raise InputError(
            f"Expected `diagonal` to be at least 1 / n_classes and below 1, but got {diagonal} "
            f"with {n_classes} classes."
        )
    odds = (1 - diagonal) / (diagonal * (n_classes - 1))
    if parametrization == "softmax":
        return -math.log(odds) * eye
    other = inverse_softplus(math.log1p(math.e) * odds)
    return eye + (1 - eye) * other


def _trace_share(frequency: Tensor | None) -> Tensor | None:
    if frequency is None:
        return None
    share = 1 / (frequency.float() * torch.count_nonzero(frequency))
    return torch.where(frequency > 0, share, 0.0)


def _check_shape(name: str, given: Tensor, expected: tuple[int, ...]) -> None:
    if given.shape != expected:
        shapes = f"{tuple(expected)}, but got {tuple(given.shape)}"
        raise InputError(f"Expected `{name}` to be of shape {shapes}.")


def check_whole_numbers(**parts: Tensor) -> None:
    """Refuse what torch would not take for numbers of rows: uint8 is a mask to it."""
    for name, part in parts.items():
        if part.dtype not in (torch.int64, torch.int32):
            raise InputError(f"Expected {name} to be of int64 or int32, but got {part.dtype}.")


def _log_rows(weight: Tensor, parametrization: Parametrization) -> Tensor:
    return log_normalize(weight if parametrization == "softmax" else log_softplus(weight))


class _BatchColumns(torch.autograd.Function):
    """Columns and traces of a batch's annotators, with a sparse gradient in closed form.

    By plain autograd the same took twice the time: with a small network, the step is the cost of
    some sixty small operations. So what can be is done on columns and diagonals alone.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        shared: Tensor | None,
        annotator: Tensor,
        label: Tensor,
        parametrization: Parametrization,
    ) -> tuple[Tensor, Tensor]:
        chosen = at_least_float32(weight.index_select(0, annotator))
        if shared is not None:
            chosen += shared
        if parametrization == "softmax":
            chosen -= chosen.amax(-1, keepdim=True)
        elif _may_be_far_down(chosen):
            chosen += (-FAR_DOWN - chosen.amax(-1, keepdim=True)).clamp_(min=0)
        column = label[:, None, None].expand(-1, chosen.shape[1], 1)
        reported = chosen.gather(2, column).squeeze(2)
        rows = _ROWS[parametrization]
        values = rows.value(chosen)
        total = values.sum(-1)
        right = values.diagonal(dim1=1, dim2=2) / total
        log_reported, log_slope = rows.log_and_slope(reported)
        ctx.save_for_backward(chosen, log_slope, total, right, column, annotator)
        ctx.slope, ctx.weight_like = rows.slope, (weight.shape, weight.dtype)
        ctx.shares = shared is not None
        return log_reported - total.log(), right.sum(1)

    @staticmethod
    def backward(
        ctx: Any, grad_columns: Tensor, grad_traces: Tensor
    ) -> tuple[Tensor, Tensor | None, None, None, None]:
        refuse_second_derivatives()
        chosen, log_slope, total, right, column, annotator = ctx.saved_tensors
        # With A = f(w) / sum f(w), d log A_ij / d w_ik = 1[j = k] (log f)'(w_ik) - f'(w_ik) / sum.
        slope = ctx.slope(chosen)
        of_traces = grad_traces[:, None]
        grad = slope * torch.addcmul(grad_columns, of_traces, right).div_(-total)[:, :, None]
        grad.scatter_add_(2, column, (grad_columns * log_slope)[:, :, None])
        grad.diagonal(dim1=1, dim2=2).addcmul_(slope.diagonal(dim1=1, dim2=2) / total, of_traces)
        shape, dtype = ctx.weight_like
        # Not by check_invariants=False, at which torch 2.11 warns.
        with torch.sparse.check_sparse_tensor_invariants(enable=False):
            sparse = torch.sparse_coo_tensor(annotator[None], grad.to(dtype), shape)
        return sparse, grad.sum(0).to(dtype) if ctx.shares else None, None, None, None


def _may_be_far_down(weight: Tensor) -> bool:
    """Say whether some row may be all below -50, where looking is cheaper than lifting it.

    Softplus is the exponential there, so that a lifted row has the same matrix; without, its sum
    would be 0 from -104 on. To look at what is on a GPU would be to wait for it.
    """
    if weight.is_cuda or torch.compiler.is_compiling() or weight.numel() == 0:
        return True
    return bool(weight.amin() < -FAR_DOWN)


class _Rows(NamedTuple):
    """A positive function f of the weights, its derivative, and log f with the derivative of it."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    log_and_slope: Callable[[Tensor], tuple[Tensor, Tensor]]


_ROWS = {
    "softplus": _Rows(F.softplus, torch.sigmoid, log_softplus_and_slope),
    "softmax": _Rows(torch.exp, torch.exp, lambda weight: (weight, torch.ones_like(weight))),
}


class FixedConfusion(nn.Module):
    """Confusion matrices that are given, not learned by gradient.

    Parameters
    ----------
    n_annotators, n_classes : int

    Attributes
    ----------
    log_matrices : Tensor of shape (n_annotators, n_classes, n_classes)
    """

    log_matrices: Tensor

    def __init__(self, n_annotators: int, n_classes: int) -> None:
        super().__init__()
        uniform = torch.full((n_annotators, n_classes, n_classes), -math.log(n_classes))
        self.register_buffer("log_matrices", uniform)

    def set_matrices(self, matrices: Tensor) -> None:
        """Set all matrices, shape (n_annotators, n_classes, n_classes); zeros become 1e-12."""
        _check_shape("matrices", matrices, self.log_matrices.shape)
        self.log_matrices = matrices.to(self.log_matrices).clamp_min(1e-12).log()

    def matrices(self) -> Tensor:
        """Give all matrices, shape (n_annotators, n_classes, n_classes)."""
        return self.log_matrices.exp()

    def log_columns(self, annotator: Tensor, label: Tensor) -> Tensor:
        """Give the log-probability of each label under each true class, (n_labels, n_classes)."""
        check_whole_numbers(annotator=annotator, label=label)
        return self.log_matrices[annotator, :, label]
