import pytest
import torch

from annotrace.errors import InputError
from annotrace.training import autocast, deterministic

CPU = torch.device("cpu")


def test_precisions():
    x = torch.ones(2, 2)
    for precision, dtype in (
        ("float32", torch.float32),
        ("bf16", torch.bfloat16),
        ("fp16", torch.float16),
    ):
        with autocast(CPU, precision):
            assert (x @ x).dtype == dtype
    with pytest.raises(InputError, match="but got 'fp8'"):
        autocast(CPU, "fp8")


def test_deterministic_restores_the_flags_of_cudnn():
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    with deterministic():
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
    assert (cudnn.deterministic, cudnn.benchmark) == before


def test_threads_that_leave_in_any_order_restore_the_flags_of_cudnn():
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    one, other = deterministic(), deterministic()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
    other.__exit__(None, None, None)
    assert (cudnn.deterministic, cudnn.benchmark) == before
