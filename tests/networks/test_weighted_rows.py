"""Weighted sums of rows against `embedding_bag`, and its gradient."""

import pytest
import torch
import torch.nn.functional as F

from annotrace.networks.weighted_rows import sum_weighted_rows

PLACE = torch.tensor([3, 0, 3, 5, 1, 1], dtype=torch.int32)
WEIGHTS = torch.tensor([0.5, 2.0, -1.0, 0.25, 1.0, 3.0])
OFFSETS = torch.tensor([0, 2, 2, 5, 6])


def embedded(table):
    weights = WEIGHTS.to(table.dtype)
    return F.embedding_bag(
        PLACE.long(), table, OFFSETS[:-1], mode="sum", per_sample_weights=weights
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_and_gradients_are_those_of_an_embedding_bag(dtype):
    torch.manual_seed(0)
    table, upstream = torch.randn(7, 3, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    found, expected = (table.clone().requires_grad_() for _ in range(2))
    sums = sum_weighted_rows(found, PLACE, WEIGHTS.to(dtype), OFFSETS)
    sums.backward(upstream)
    embedded(expected).backward(upstream)
    torch.testing.assert_close(sums, embedded(expected))
    torch.testing.assert_close(found.grad, expected.grad)


def test_an_empty_bag_sums_to_zero():
    sums = sum_weighted_rows(torch.ones(7, 3), PLACE, WEIGHTS, OFFSETS)
    assert sums[1].tolist() == [0.0, 0.0, 0.0]


def test_a_gradient_that_is_not_contiguous_is_read_right():
    table = torch.ones(7, 3, requires_grad=True)
    sum_weighted_rows(table, PLACE, WEIGHTS, OFFSETS).sum().backward()
    assert table.grad[:, 0].tolist() == [2.0, 4.0, 0.0, -0.5, 0.0, 0.25, 0.0]
