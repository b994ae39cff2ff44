import copy

import pytest
import torch
from torch import nn

from annotrace.crowd import Confusion
from annotrace.training import RowAdam, parameter_groups
from annotrace.training.optimizers import (
    make_capturable,
    make_optimizers,
    scale_learning_rates,
    sum_repeated_rows,
)


def sparse_grad(rows, values, shape):
    return torch.sparse_coo_tensor(torch.tensor([rows]), values, shape, check_invariants=True)


def start(n_rows=4):
    torch.manual_seed(0)
    return nn.Parameter(torch.randn(n_rows, 2, 3))


def test_row_adam_equals_adam_if_every_row_has_a_gradient():
    ours, theirs = start(), start()
    row_adam, adam = RowAdam([ours], lr=0.01), torch.optim.Adam([theirs], lr=0.01)
    for step in range(50):
        # From far above to far below eps, so that eps counts as it does in Adam.
        grad = torch.randn(4, 2, 3) * 10.0 ** -(step % 10)
        ours.grad, theirs.grad = sparse_grad([0, 1, 2, 3], grad, ours.shape), grad
        row_adam.step()
        adam.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_repeated_rows_sum_their_gradients():
    ours, theirs = start(), start()
    grad = torch.randn(3, 2, 3)
    for parameter, rows, values in (
        (ours, [1, 3, 1], grad),
        (theirs, [1, 3], torch.stack([grad[0] + grad[2], grad[1]])),
    ):
        parameter.grad = sparse_grad(rows, values, parameter.shape)
        RowAdam([parameter], lr=0.01).step()
    torch.testing.assert_close(ours, theirs)


def test_each_place_of_a_repeated_row_has_the_sum_of_all():
    rows = torch.randint(7, (40,), generator=torch.Generator().manual_seed(0))
    values = torch.arange(80.0).view(40, 2)
    expected = torch.stack([values[rows == row].sum(0) for row in rows])
    torch.testing.assert_close(sum_repeated_rows(rows, values, 9), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_row_adam_moves_repeated_rows_on_a_gpu_as_on_a_cpu():
    moved = []
    for device in ("cpu", "cuda"):
        parameter = nn.Parameter(start().detach().to(device))
        optimizer = RowAdam([parameter], lr=0.01)
        generator = torch.Generator().manual_seed(1)
        for _ in range(5):
            grad = torch.randn(6, 2, 3, generator=generator)
            parameter.grad = sparse_grad([1, 3, 1, 1, 0, 3], grad, parameter.shape).to(device)
            optimizer.step()
        moved.append(parameter.detach().cpu())
    torch.testing.assert_close(*moved)


def test_rows_without_a_gradient_do_not_move():
    parameter = start()
    before = parameter.detach().clone()
    optimizer = RowAdam([parameter], lr=0.01)
    for _ in range(3):
        parameter.grad = sparse_grad([2], torch.ones(1, 2, 3), parameter.shape)
        optimizer.step()
    assert torch.equal(parameter[[0, 1, 3]], before[[0, 1, 3]])
    assert (parameter[2] < before[2]).all()


def test_a_late_row_moves_as_in_a_first_step():
    parameter = start()
    optimizer = RowAdam([parameter], lr=0.01)
    for row in [0] * 500 + [1]:
        before = parameter.detach().clone()
        parameter.grad = sparse_grad([row], torch.full((1, 2, 3), 0.3), parameter.shape)
        optimizer.step()
    # Adam's first step has the length of the rate.
    torch.testing.assert_close(before[1] - parameter[1], torch.full((2, 3), 0.01))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_state_of_row_adam_can_be_saved_and_loaded(dtype):
    one = nn.Parameter(start().detach().to(dtype))
    first = RowAdam([one], lr=0.01)
    grads = [
        sparse_grad([step % 4], torch.randn(1, 2, 3, dtype=dtype), one.shape) for step in range(12)
    ]
    for grad in grads[:6]:
        one.grad = grad
        first.step()
    other = nn.Parameter(one.detach().clone())
    second = RowAdam([other], lr=0.5)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for grad in grads[6:]:
        one.grad, other.grad = grad, grad
        first.step()
        second.step()
    assert torch.equal(one, other)
    assert second.state[other]["averages"].dtype == torch.float32


def test_dense_gradients_are_errors():
    parameter = start()
    parameter.grad = torch.ones_like(parameter)
    with pytest.raises(TypeError, match="sparse gradients"):
        RowAdam([parameter]).step()


def test_matrices_learn_faster_and_do_not_decay():
    network = nn.Linear(3, 2)
    layer = Confusion(5, 2, lr_scale=30)
    together = nn.ModuleList([network, layer])
    for modules in ((network, layer), (together,)):
        first, second = parameter_groups(*modules, lr=1e-3, weight_decay=0.1)
        assert [id(p) for p in first["params"]] == [id(p) for p in network.parameters()]
        assert (first["lr"], first["weight_decay"]) == (1e-3, 0.1)
        assert second["params"] == [layer.weight]
        assert (second["lr"], second["weight_decay"]) == (pytest.approx(0.03), 0.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_schedules_scale_all_learning_rates(sparse):
    network = nn.ModuleList([nn.Linear(4, 3), Confusion(5, 3, sparse=sparse)])
    optimizers = make_optimizers(network, lr=0.1, weight_decay=0.0)
    scale_learning_rates(optimizers, 0.5)
    scale_learning_rates(optimizers, 0.1)
    rates = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    assert rates == pytest.approx([0.01, 0.1])
    assert len(optimizers) == 1 + sparse


def test_capturable_optimisers_read_their_learning_rates_from_tensors():
    weight = nn.Parameter(torch.zeros(3))
    adam = torch.optim.Adam([weight], lr=0.5, fused=True)
    make_capturable([adam])
    weight.grad = torch.ones(3)
    adam.step()
    torch.testing.assert_close(weight.detach(), torch.full((3,), -0.5))
    adam.param_groups[0]["lr"].fill_(0.0)
    adam.step()
    torch.testing.assert_close(weight.detach(), torch.full((3,), -0.5))
