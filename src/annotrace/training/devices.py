"""Where and how precisely to compute, and seeds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from annotrace.errors import InputError

Precision: TypeAlias = Literal["float32", "bf16", "fp16"]

_HALF: dict[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}


def pick_device(device: str | torch.device) -> torch.device:
    """Turn "auto", "cpu", "cuda", "cuda:1" or "mps" into a device that is there."""
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(
            f"Expected `device` to be 'auto', 'cpu', 'cuda' or 'mps', but got {device!r}."
        ) from None
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": _mps_is_available()}
    if not present.get(chosen.type, False):
        raise InputError(f"The device {str(device)!r} is not available here; use 'cpu' or 'auto'.")
    return chosen


def _mps_is_available() -> bool:
    return torch.backends.mps.is_available()


def autocast(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """Give the context in which the network runs in half precision, or one that does nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    if precision not in _HALF:
        raise InputError(
            f"Expected `precision` to be 'float32', 'bf16' or 'fp16', but got {precision!r}."
        )
    # Copies of weights made while a CUDA graph is recorded are of no use outside it.
    return torch.autocast(device.type, dtype=_HALF[precision], cache_enabled=device.type != "cuda")


def seed_of(random_state: Any) -> int:
    """Draw a seed from what scikit-learn calls a random state: None, an int or a generator."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, int | np.integer):
        return int(random_state) if random_state < 2**32 else _hash(int(random_state))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InputError(
        f"Expected `random_state` to be None, an integer or a numpy generator, "
        f"but got {random_state!r}."
    )


def _hash(seed: int) -> int:
    """Make a seed of any size one of 32 bits, of which torch can take a multiple."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Make torch's own randomness (starting weights, dropout) follow `seed`, then put it back."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Keep cuDNN to algorithms that give the same every time, then put its flags back.

    Not by ``torch.use_deterministic_algorithms``: it warns at every product of matrices unless an
    environment variable was set before the program began, and refuses max-pooling, which here gives
    the same every time. What adds in any order on a GPU, this library avoids itself (`add_up`).
    """
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before


def get_random_state() -> list[torch.Tensor]:
    """Give the state of torch's own randomness, on the CPU and on every GPU."""
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *on_gpus]


def set_random_state(state: list[torch.Tensor]) -> None:
    """Take back what `get_random_state` gave."""
    on_cpu, *on_gpus = (part.cpu() for part in state)
    torch.set_rng_state(on_cpu)
    if len(on_gpus) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(on_gpus)
