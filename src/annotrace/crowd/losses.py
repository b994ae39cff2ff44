"""The likelihood of labels by many annotators, and the paper's loss (eq. 4).

A network gives p(i | x) for every class i and the annotator model p(label | i, annotator). The
probability of a label is their product, summed over the unknown class::

    p(label | x, annotator) = sum_i p(i | x) p(label | i, annotator)
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel, check_integers
from annotrace.crowd.fused_loss import fused_trace_regularized_nll
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.safe_math import at_least_float32, mixture_log_likelihood
from annotrace.crowd.traced_model import TracedModel
from annotrace.errors import InputError


def label_log_likelihood(
    logits: Tensor,
    model: AnnotatorModel,
    row: Tensor,
    annotator: Tensor,
    label: Tensor,
    item: Tensor | None = None,
) -> Tensor:
    """Compute log p(label | x, annotator) for each label, shape (n_labels,).

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
        The classifier's, in any float type; computed in float32 or more.
    model : AnnotatorModel
        A `Confusion`, for example.
    row, annotator, label : LongTensor of shape (n_labels,)
        The row of `logits` that each label belongs to, who gave it, and the class reported. Leave
        out missing labels: on a GPU a label of -1 goes unnoticed, since looking would wait for it.
    item : LongTensor of shape (n_rows,), optional
        The item of each row, for models whose errors depend on it.
    """
    _check_labels(row, annotator, label)
    log_likelihood = model.log_likelihood(annotator, label, None if item is None else item[row])
    log_p = _log_probabilities(logits, log_likelihood.shape[1])
    return mixture_log_likelihood(log_p, log_likelihood.to(log_p.dtype), row)


def crowd_nll(
    logits: Tensor,
    model: AnnotatorModel,
    row: Tensor,
    annotator: Tensor,
    label: Tensor,
    item: Tensor | None = None,
) -> Tensor:
    """Compute the cross-entropy of labels: summed over the labels of a row, mean over rows.

    As in the paper's listing, the sum is divided by the number of rows, labelled or not. Nothing is
    clipped, so that the gradient never vanishes.

    Parameters
    ----------
    logits, model, row, annotator, label, item
        As in `label_log_likelihood`.

    Examples
    --------
    >>> from annotrace.crowd.confusion import Confusion
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> layer = Confusion(n_annotators=2, n_classes=2)
    >>> row, annotator, label = torch.tensor([[0, 0, 1], [0, 1, 1], [0, 1, 1]])
    >>> crowd_nll(logits, layer, row, annotator, label).item()  # doctest: +ELLIPSIS
    1.27...
    """
    _check_rows(logits)
    return label_log_likelihood(logits, model, row, annotator, label, item).sum() / -len(logits)


def joint_nll(
    logits: Tensor,
    model: AnnotatorModel,
    row: Tensor,
    annotator: Tensor,
    label: Tensor,
    item: Tensor | None = None,
) -> Tensor:
    """Compute the negative log-likelihood of the labels of a row taken together, mean over rows.

    The model's own likelihood, -log sum_i p(i | x) prod_r p(label_r | i, r). Equal to `crowd_nll`
    where every row has one label.

    Parameters
    ----------
    logits, model, row, annotator, label, item
        As in `label_log_likelihood`.
    """
    _check_labels(row, annotator, label)
    _check_rows(logits)
    sizes = len(logits), model.n_annotators, model.n_classes
    labels = LabelIndex(row, annotator, label, *sizes, item=item)
    log_p = _log_probabilities(logits, model.n_classes)
    log_joint = log_p + model.item_log_likelihood(labels).to(log_p.dtype)
    return torch.logsumexp(log_joint, dim=-1).sum() / -len(logits)


def trace_regularized_nll(
    logits: Tensor,
    model: AnnotatorModel,
    row: Tensor,
    annotator: Tensor,
    label: Tensor,
    lam: float,
    *,
    joint: bool = False,
    item: Tensor | None = None,
) -> Tensor:
    """Compute the paper's loss: `crowd_nll` plus `lam` times the mean trace over annotators.

    Parameters
    ----------
    logits, model, row, annotator, label, item
        As in `label_log_likelihood`.
    lam : float
    joint : bool
        Use `joint_nll` in place of `crowd_nll`.
    """
    if isinstance(model, TracedModel):
        _check_labels(row, annotator, label)
        _check_rows(logits)
        log_p = _log_probabilities(logits, model.n_classes)
        return fused_trace_regularized_nll(log_p, model, row, annotator, label, lam, joint=joint)
    nll = joint_nll if joint else crowd_nll
    return nll(logits, model, row, annotator, label, item) + lam * model.mean_trace()


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of soft targets for each row, shape (..., n_rows).

    Parameters
    ----------
    logits : Tensor of shape (..., n_rows, n_classes)
    targets : Tensor of shape (n_rows, n_classes)
    """
    return -(targets * F.log_softmax(logits.float(), dim=-1)).sum(-1)


def _log_probabilities(logits: Tensor, n_classes: int) -> Tensor:
    if logits.dim() != 2 or logits.shape[1] != n_classes:
        raise InputError(
            f"Expected logits of shape (n_rows, {n_classes}), but got {tuple(logits.shape)}."
        )
    return F.log_softmax(at_least_float32(logits), dim=-1)


def _check_rows(logits: Tensor) -> None:
    if len(logits) == 0:
        raise InputError(
            f"Expected logits of at least one row, but got the shape {tuple(logits.shape)}."
        )


def _check_labels(row: Tensor, annotator: Tensor, label: Tensor) -> None:
    """Raise for labels that torch would broadcast or count from the end; never waits for a GPU."""
    shapes = [tuple(part.shape) for part in (row, annotator, label)]
    if row.dim() != 1 or len(set(shapes)) > 1:
        raise InputError(
            "Expected row, annotator and label of the same length, one element per label, but got "
            f"the shapes {shapes[0]}, {shapes[1]} and {shapes[2]}."
        )
    check_integers(row=row, annotator=annotator, label=label)
    if label.device.type != "cpu" or len(label) == 0 or torch.compiler.is_compiling():
        return
    for name, part in (("annotator", annotator), ("label", label)):
        if part.min() < 0:
            raise InputError(
                f"Expected {name} to be 0 or more, but got {int(part.min())}. Leave out missing "
                "labels."
            )
