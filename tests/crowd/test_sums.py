import pytest
import torch

from annotrace.crowd.sums import _by_membership, sum_groups


def by_hand(values, group, size):
    sums = torch.zeros(size, values.shape[1], dtype=values.dtype)
    for value, place in zip(values, group, strict=True):
        sums[place] += value
    return sums


@pytest.mark.parametrize(
    "add", [sum_groups, lambda values, *groups: _by_membership(values, groups)]
)
@pytest.mark.parametrize("n", [0, 1, 40])
def test_rows_are_added_by_each_grouping(add, n):
    torch.manual_seed(n)
    values = torch.randn(n, 3, dtype=torch.float64)
    groups = [(torch.randint(size - 1, (n,)), size) for size in (7, 11)]
    for sums, (group, size) in zip(add(values, *groups), groups, strict=True):
        torch.testing.assert_close(sums, by_hand(values, group, size))


def test_sums_are_not_rounded_to_half_precision():
    values = torch.full((3, 1), 1.001)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (sums,) = _by_membership(values, [(torch.zeros(3, dtype=torch.long), 2)])
    torch.testing.assert_close(sums, torch.tensor([[3.003], [0.0]]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("n", [1_000, 1_000_000])
def test_sums_on_a_gpu_are_the_same_every_time(n):
    values, group = torch.randn(n, 10, device="cuda"), torch.randint(100, (n,), device="cuda")
    first, *others = (sum_groups(values, (group, 100))[0] for _ in range(5))
    assert all(torch.equal(first, other) for other in others)
    (expected,) = sum_groups(values.double().cpu(), (group.cpu(), 100))
    torch.testing.assert_close(first.double().cpu(), expected, rtol=1e-3, atol=1e-3)
