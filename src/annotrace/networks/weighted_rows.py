"""Weighted sums of the rows of a table: the product of a sparse matrix and a dense one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor
from torch.autograd.function import once_differentiable


def sum_weighted_rows(table: Tensor, place: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    """Return for each bag the sum of its rows of a table, times their weights.

    Parameters
    ----------
    table : Tensor of shape (n_places, width)
    place : IntTensor of shape (n_entries,)
        The row of each entry.
    weights : Tensor of shape (n_entries,)
        Without gradient.
    offsets : LongTensor of shape (n_bags + 1,)
        The entries of bag k are ``offsets[k]`` to ``offsets[k + 1]``.

    Returns
    -------
    Tensor of shape (n_bags, width)

    Examples
    --------
    >>> table = torch.tensor([[1.0], [10.0], [100.0]])
    >>> place, offsets = torch.tensor([0, 2, 1], dtype=torch.int32), torch.tensor([0, 2, 3])
    >>> sum_weighted_rows(table, place, torch.tensor([1.0, 2.0, 3.0]), offsets)
    tensor([[201.],
            [ 30.]])
    """
    if table.device.type == "cpu" and table.dtype == torch.float32:
        summed: Tensor = _SparseProduct.apply(table, place, weights, offsets)  # type: ignore[no-untyped-call]
        return summed
    return F.embedding_bag(
        place.long(), table, offsets[:-1], mode="sum", per_sample_weights=weights
    )


class _SparseProduct(torch.autograd.Function):
    """The product by scipy: forward and backward take a fifth to a half of `embedding_bag`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, place: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
        entries = weights.numpy(), place.numpy(), offsets.int().numpy()
        ctx.bags = sparse.csr_array(entries, shape=(len(offsets) - 1, len(table)))
        return torch.from_numpy(ctx.bags @ table.detach().numpy())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        of_table = ctx.bags.T @ grad.contiguous().numpy()
        return torch.from_numpy(of_table), None, None, None
