import numpy as np
import pytest
import torch

from annotrace.errors import InputError
from annotrace.training import autocast, deterministic, pick_device, seed_of, seeded

CPU = torch.device("cpu")


def test_devices():
    assert pick_device("cpu") == CPU
    assert pick_device(CPU) == CPU
    assert pick_device("auto").type in ("cpu", "cuda")
    with pytest.raises(InputError, match="'auto', 'cpu', 'cuda' or 'mps', but got 'gpu'"):
        pick_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="'cuda' is not available here"):
            pick_device("cuda")


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


def test_seeds():
    assert seed_of(5) == seed_of(np.int64(5)) == 5
    large = [seed_of(2**power) for power in (31, 32, 45, 62, 64, 100)]
    assert large[0] == 2**31
    assert len(set(large)) == 6
    assert max(large) < 2**32
    for make in (np.random.default_rng, np.random.RandomState):
        assert seed_of(make(0)) == seed_of(make(0))
    assert seed_of(None) != seed_of(None)
    with pytest.raises(InputError, match="an integer or a numpy generator"):
        seed_of("one")


def test_seeding_restores_the_random_state():
    before = torch.get_rng_state()
    with seeded(3, CPU):
        one = torch.rand(2)
    with seeded(3, CPU):
        assert torch.equal(torch.rand(2), one)
    assert torch.equal(torch.get_rng_state(), before)


def test_deterministic_restores_the_flags_of_cudnn():
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    with deterministic():
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
    assert (cudnn.deterministic, cudnn.benchmark) == before
