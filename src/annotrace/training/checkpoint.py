"""Checkpoints: stop a training and resume it, with bitwise equal results."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from annotrace.errors import RunError
from annotrace.seeds import seed_of
from annotrace.training.batches import CrowdData
from annotrace.training.settings import Settings

FORMAT = 3

# Parameters that do not change the result; the seed is part of the settings.
_WITHOUT_EFFECT = ("verbose", "callbacks", "checkpoint", "device", "cuda_graphs", "random_state")


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint atomically: a partial file never replaces the previous one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    torch.save({"format": FORMAT, **state}, partial)
    partial.replace(path)


def load_checkpoint(path: Path, fingerprint: str, device: torch.device) -> dict[str, Any]:
    """Read a checkpoint.

    Raises
    ------
    RunError
        If the file is damaged, from another version, or belongs to another training.
    """
    state = _read(path, device)
    if state["fingerprint"] != fingerprint:
        raise RunError(
            f"{path}: belongs to a training with other settings or data; resume with those, or "
            "delete the file to start again."
        )
    return state


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    """Read the tensors and plain values of a checkpoint, and check its format."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # for arbitrary bytes torch raises almost anything, KeyError too
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise RunError(
            f"{path}: the checkpoint is damaged ({reason}); delete it to start again."
        ) from None
    if not isinstance(state, dict) or "format" not in state:
        raise RunError(f"{path}: not a checkpoint of annotrace; use another file name.")
    if state["format"] != FORMAT:
        raise RunError(f"{path}: written by another version of annotrace; delete it.")
    return state


class CheckpointSeries:
    """The checkpoints of a fit that trains several networks one after the other.

    On resuming, finished trainings are read back, the interrupted one continues, and the
    computations between trainings are repeated.

    Parameters
    ----------
    path : path-like or None
        The checkpoint of the first training; later ones append a number to the name. None disables
        checkpoints.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._n_started = 0

    def seed(self, random_state: Any) -> int:
        """Return the seed of the fit: without a random state, that of the interrupted fit."""
        if random_state is None and self.path is not None and self.path.exists():
            return int(_read(self.path, torch.device("cpu"))["seed"])
        return seed_of(random_state)

    def next(self) -> Path | None:
        """Return the checkpoint of the next training."""
        if self.path is None:
            return None
        if self._n_started == 0 and not self.path.exists():
            # The user deleted the first checkpoint to start again, so the later ones are obsolete.
            self._remove_from(1)
        self._n_started += 1
        return self._numbered(self._n_started - 1)

    def clear(self) -> None:
        """Remove all checkpoints."""
        if self.path is not None:
            self._remove_from(0)

    def _remove_from(self, number: int) -> None:
        while (path := self._numbered(number)).exists():
            path.unlink()
            number += 1

    def _numbered(self, number: int) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


def fingerprint(
    estimator: Any, settings: Settings, data: CrowdData, gold: NDArray[np.int32]
) -> str:
    """Return a hash of the method, its parameters, the settings, items, labels and gold classes.

    Parameters
    ----------
    estimator : BaseEstimator
    settings : Settings
    data : CrowdData
    gold : ndarray of shape (n_items,)
    """
    digest = hashlib.sha256(type(estimator).__name__.encode())
    for name, value in sorted(estimator.get_params(deep=False).items()):
        if name not in _WITHOUT_EFFECT:
            digest.update(name.encode())
            digest.update(_as_bytes(value))
    digest.update(repr(sorted(asdict(replace(settings, cuda_graphs=True)).items())).encode())
    digest.update(data.digest.encode())
    for column in (data.table.item, data.table.annotator, data.table.label, gold):
        digest.update(column.tobytes())
    return digest.hexdigest()


def _as_bytes(value: Any) -> bytes:
    """Return a parameter as bytes, with all weights of a module and all values of an array."""
    if isinstance(value, nn.Module):
        tensors = [*(weight.detach() for weight in value.parameters()), *value.buffers()]
        weights = [tensor.flatten().view(torch.uint8).cpu().numpy() for tensor in tensors]
        return b"".join([repr(value).encode(), *(weight.tobytes() for weight in weights)])
    if isinstance(value, np.ndarray):
        return repr((value.shape, value.dtype.str)).encode() + value.tobytes()
    return repr(value).encode()


class Interrupt:
    """Whether the user pressed Ctrl-C."""

    requested = False


@contextlib.contextmanager
def graceful_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a request, which the training loop checks between batches.

    The second Ctrl-C raises KeyboardInterrupt. Outside the main thread, where Python cannot handle
    signals, this does nothing.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def request(number: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, request)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)
