"""The device to compute on."""

from __future__ import annotations

import torch

from annotrace.distributed import current
from annotrace.errors import InputError


def pick_device(device: str | torch.device) -> torch.device:
    """Return the device named "auto", "cpu", "cuda", "cuda:1" or "mps", if it is available."""
    if str(device) in ("auto", "cuda") and torch.cuda.is_available():
        processes = current()
        # Each process of a machine takes a GPU of its own.
        number = processes.local_rank % torch.cuda.device_count()
        return torch.device("cuda" if processes.size == 1 else f"cuda:{number}")
    if str(device) == "auto":
        return torch.device("cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(
            f"Expected `device` to be 'auto', 'cpu', 'cuda' or 'mps', but got {device!r}."
        ) from None
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not present.get(chosen.type, False):
        raise InputError(f"The device {str(device)!r} is not available here; use 'cpu' or 'auto'.")
    return chosen
