"""Gradients of a batch that several processes compute together.

Each process computes the loss of its rows, a mean over rows plus what does not depend on them, such
as the mean trace. Weighted by the share of the batch that the rows are, these losses add up to the
loss of the whole batch, and so do their gradients: what does not depend on rows counts once.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from annotrace.distributed import Processes


def add_up_gradients(
    parameters: Iterable[Tensor], loss: Tensor, share: float, processes: Processes
) -> Tensor:
    """Replace gradients by those of the whole batch, and return its loss.

    Dense gradients of one type travel as one array. Of sparse gradients only the rows that occur in
    the batch travel.

    Parameters
    ----------
    parameters : iterable of Tensor
        With their gradients for the rows of this process.
    loss : Tensor of shape ()
        Of the rows of this process.
    share : float
        What fraction of the batch they are.
    processes : Processes

    Returns
    -------
    Tensor of shape ()
    """
    if processes.size == 1:
        return loss
    total = loss.clone()
    trained = [(each, each.grad) for each in parameters if each.grad is not None]
    dense = [total, *(gradient for _, gradient in trained if not gradient.is_sparse)]
    for dtype in {tensor.dtype: None for tensor in dense}:
        _add_up_dense([tensor for tensor in dense if tensor.dtype == dtype], share, processes)
    for parameter, gradient in trained:
        if gradient.is_sparse:
            parameter.grad = _add_up_sparse(gradient, share, processes)
    return total


def _add_up_dense(tensors: list[Tensor], share: float, processes: Processes) -> None:
    flat = torch.cat([tensor.flatten() for tensor in tensors]).mul_(share)
    parts = processes.add_up(flat).split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view(tensor.shape))


def _add_up_sparse(gradient: Tensor, share: float, processes: Processes) -> Tensor:
    own = gradient.coalesce()
    place = processes.all_rows(own.indices()[0])
    values = processes.all_rows(own.values() * share)
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        return torch.sparse_coo_tensor(place[None], values, gradient.shape)
