r"""The likelihood of a batch's labels under low-rank matrices, with its gradient by hand.

With the weights of groups :math:`e_g` of an annotator, and :math:`U_{kg}` of a true class, the
shares of reports V and the probability of an error w,

.. math:: p(j \mid k) = (1 - w_k) \, \delta_{kj} + w_k N_k / S_k, \quad
          S_k = \sum_g e_g U_{kg}, \quad N_k = \sum_g e_g V_{gj} U_{kg}.

A step reads and writes few arrays (n_labels, n_classes), and each product with the k columns of a
factor is written so that BLAS has long rows to work on: the other way round takes four times as
long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from annotrace.crowd.safe_math import refuse_second_derivatives
from annotrace.crowd.sums import sum_groups

# Bounds of factors, so that no product of them underflows and wide arrays need no bounds. The
# gradient is that without bounds: it never vanishes.
SMALLEST, LARGEST_LOGIT = 1e-10, 15.0


def low_rank_log_likelihood(
    own: Tensor, skill: Tensor, group: Tensor, report: Tensor, label: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the log-likelihood of labels and the trace of each label's annotator, in one pass.

    Parameters
    ----------
    own : Tensor of shape (n_labels, 1 + rank)
        The skill of each label's annotator, and the logits of its groups.
    skill : Tensor of shape (n_classes,)
        Added to the annotator's skill; a sigmoid of the sum is that of a class.
    group : Tensor of shape (n_classes, rank)
        Logits of the groups of each true class.
    report : Tensor of shape (rank, n_classes)
        Logits of what is reported in each group.
    label : LongTensor of shape (n_labels,)

    Returns
    -------
    log_likelihood : Tensor of shape (n_labels, n_classes)
    traces : Tensor of shape (n_labels,)
    """
    with torch.autocast(own.device.type, enabled=False):
        return _LowRankLikelihood.apply(  # type: ignore[no-any-return,no-untyped-call]
            own, skill, group, report, label
        )


class _LowRankLikelihood(torch.autograd.Function):
    """Labels of an annotator's own class, the diagonal, are corrected one by one."""

    @staticmethod
    def forward(
        ctx: Any, own: Tensor, skill: Tensor, group: Tensor, report: Tensor, label: Tensor
    ) -> tuple[Tensor, Tensor]:
        # Both occur in a ratio only, so that their rows need not sum to one.
        weight, by_class = _exp_up_to_scale(own[:, 1:]), _exp_up_to_scale(group)
        share = report.t().softmax(0).clamp_min_(SMALLEST)
        of_label = share.index_select(0, label)
        weights = torch.cat([weight, weight * of_label])
        sums = weights @ by_class.t()
        total, reported = sums.chunk(2)
        wrong = torch.sub(_bounded(-own[:, :1]).contiguous(), _bounded(skill)).sigmoid_()
        scaled = wrong / total
        by_group = _times(scaled, by_class * share)
        traces = (weight * by_group).sum(1) - wrong.sum(1) + len(skill)
        place = label[:, None]
        likelihood = scaled * reported
        by_error, error = likelihood.gather(1, place), wrong.gather(1, place)
        own_class = by_error + 1 - error
        likelihood.scatter_(1, place, own_class)
        ctx.save_for_backward(weights, by_class, share, of_label, sums, wrong, scaled, by_group)
        ctx.label, ctx.diagonal = label, (by_error, error, own_class)
        return likelihood.log_(), traces

    @staticmethod
    def backward(
        ctx: Any, grad_log: Tensor, grad_traces: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        refuse_second_derivatives()
        weights, by_class, share, of_label, sums, wrong, scaled, by_group = ctx.saved_tensors
        label, (by_error, error, own_class), place = ctx.label, ctx.diagonal, ctx.label[:, None]
        weight, of_traces = weights.chunk(2)[0], grad_traces[:, None]
        traced = weight * of_traces
        total, reported = sums.chunk(2)
        own_grad = grad_log.gather(1, place)
        per_error = own_grad / own_class

        # By log(w / S): all of the likelihood but the share of correct labels, and the trace.
        grad = traced @ (by_class * share).t()
        torch.addcmul(grad_log, grad, scaled, out=grad)
        grad.scatter_add_(1, place, per_error * by_error - own_grad)
        grad_sums = torch.empty_like(sums)
        by_total, by_reported = grad_sums.chunk(2)
        torch.div(grad, total, out=by_total).neg_()
        torch.div(grad_log, reported, out=by_reported)
        by_reported.scatter_(1, place, per_error * scaled.gather(1, place))

        # By the logit of w, whose derivative is w (1 - w); of log w it is 1 - w.
        grad.addcmul_(wrong, of_traces, value=-1)
        grad.scatter_add_(1, place, -per_error * error)
        grad.addcmul_(grad, wrong, value=-1).neg_()

        by_weight, by_product = _times(grad_sums, by_class).chunk(2)
        of_scaled = _transposed_times(scaled, traced)
        grad_weight = by_weight + of_label * by_product + of_traces * by_group
        grad_class = _transposed_times(grad_sums, weights) + of_scaled * share
        (grad_share,) = sum_groups(weight * by_product, (label, len(share)))
        grad_share += of_scaled * by_class
        centred = grad_share - (share * grad_share).sum(0)
        grad_own = torch.cat([grad.sum(1, keepdim=True), weight * grad_weight], 1)
        return grad_own, grad.sum(0), by_class * grad_class, (share * centred).t(), None


def _exp_up_to_scale(logits: Tensor) -> Tensor:
    return (logits - logits.amax(1, keepdim=True)).exp_().clamp_min_(SMALLEST)


def _bounded(logits: Tensor) -> Tensor:
    return logits.clamp(-LARGEST_LOGIT, LARGEST_LOGIT)


def _times(wide: Tensor, factor: Tensor) -> Tensor:
    """Return wide @ factor, (n_labels, rank), by a product whose result has long rows."""
    return (factor.t().contiguous() @ wide.t()).t()


def _transposed_times(wide: Tensor, narrow: Tensor) -> Tensor:
    """Return wide.t() @ narrow, (n_classes, rank), by a product whose result has long rows."""
    return (narrow.t().contiguous() @ wide).t()
