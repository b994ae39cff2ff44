"""Precision and deterministic algorithms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import torch

from annotrace.errors import InputError
from annotrace.threads import GLOBAL_STATE

Precision: TypeAlias = Literal["float32", "bf16", "fp16"]

_HALF: dict[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}

_flags_before: list[tuple[bool, bool]] = []


def autocast(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """Return a context that runs the network in a precision; "float32" changes nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    if precision not in _HALF:
        raise InputError(
            f"Expected `precision` to be 'float32', 'bf16' or 'fp16', but got {precision!r}."
        )
    # Casts of weights that are cached while a CUDA graph is captured are invalid outside it.
    return torch.autocast(device.type, dtype=_HALF[precision], cache_enabled=device.type != "cuda")


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Restrict cuDNN to deterministic algorithms, then restore its flags.

    ``torch.use_deterministic_algorithms`` is unsuitable: it warns about every matrix product unless
    an environment variable was set before the program started, and rejects max-pooling, which is
    deterministic here. This library avoids atomic additions on the GPU by itself.
    """
    cudnn = torch.backends.cudnn
    with GLOBAL_STATE:
        _flags_before.append((cudnn.deterministic, cudnn.benchmark))
        cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        with GLOBAL_STATE:
            # The last of several threads to leave, whichever it is, finds the caller's flags.
            cudnn.deterministic, cudnn.benchmark = _flags_before.pop()
