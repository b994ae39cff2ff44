"""Sums by group that are deterministic.

``index_add_`` on a GPU adds in whatever order its threads finish, so that two runs differ in the
last digits, and after some epochs in the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

MAX_MEMBERSHIP = 2**24
"""Entries of the 0-1 matrix that groups are summed by on a GPU; above it labels are sorted."""


def sum_groups(values: Tensor, *groups: tuple[Tensor, int]) -> Sequence[Tensor]:
    """Sum the rows of `values` that are in one group, for one or several ways to group them.

    Parameters
    ----------
    values : Tensor of shape (n, width)
    *groups : pairs of LongTensor of shape (n,) and int
        The group of each row, and how many groups there are.

    Returns
    -------
    sequence of Tensor of shape (n_groups, width)
        One for each way to group them.

    Examples
    --------
    >>> (sums,) = sum_groups(torch.tensor([[1.0], [2.0], [4.0]]), (torch.tensor([1, 0, 1]), 3))
    >>> sums.flatten().tolist()
    [2.0, 5.0, 0.0]
    """
    if values.is_cuda and len(values) * sum(size for _, size in groups) <= MAX_MEMBERSHIP:
        return _by_membership(values, groups)
    return [_one_by_one(values, *group) for group in groups]


def _by_membership(values: Tensor, groups: Sequence[tuple[Tensor, int]]) -> Sequence[Tensor]:
    """Multiply by the matrix of who is in which group: few kernels, for all groupings at once."""
    sizes = [size for _, size in groups]
    member = values.new_zeros(sum(sizes), len(values))
    for part, (group, _) in zip(member.split(sizes), groups, strict=True):
        part.scatter_(0, group[None], 1.0)
    with torch.autocast(values.device.type, enabled=False):
        sums = member @ values
    return torch.split(sums, sizes)


def _one_by_one(values: Tensor, group: Tensor, size: int) -> Tensor:
    return add_to_groups(values.new_zeros(size, values.shape[1]), values, group)


def add_to_groups(sums: Tensor, values: Tensor, group: Tensor) -> Tensor:
    """Add the rows of `values` to those of `sums` that `group` (n,) names, in place."""
    if values.is_cuda:
        # It sorts by group, and adds in that order.
        return sums.index_put_((group,), values, accumulate=True)
    return sums.index_add_(0, group, values)
