"""A training put down and taken up again, to the last bit."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from annotrace.errors import RunError
from annotrace.training.devices import seed_of

FORMAT = 2


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    torch.save({"format": FORMAT, **state}, partial)
    partial.replace(path)


def load_checkpoint(path: Path, fingerprint: str, device: torch.device) -> dict[str, Any]:
    """Read a checkpoint back.

    Raises
    ------
    RunError
        If it is damaged, from another version, or of another training.
    """
    state = _read(path, device)
    if state["fingerprint"] != fingerprint:
        raise RunError(
            f"{path}: belongs to a training with other settings or data; go on with those, or "
            "delete it to begin anew."
        )
    return state


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    """Read what is in a checkpoint, as tensors and plain values only."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch lets a file of other bytes fail in any way, KeyError too
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise RunError(
            f"{path}: the checkpoint is damaged ({why}); delete it to begin anew."
        ) from None
    if not isinstance(state, dict) or "format" not in state:
        raise RunError(f"{path}: not a checkpoint of a training; name another file.")
    if state["format"] != FORMAT:
        raise RunError(f"{path}: written by another version of annotrace; delete it.")
    return state


class Stages:
    """The checkpoints of a fit that trains several times, one after the other.

    Trainings that had ended are read back, what lies between them is done again: a fit that was
    stopped goes on in the training where it was.

    Parameters
    ----------
    path : Path or None
        The checkpoint of the first training; those of the others have a number behind the name.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._begun = 0

    def seed(self, random_state: Any) -> int:
        """Give the seed of the fit: that of the one that was stopped, where none is asked for."""
        if random_state is None and self.path is not None and self.path.exists():
            return int(_read(self.path, torch.device("cpu"))["seed"])
        return seed_of(random_state)

    def next(self) -> Path | None:
        """Give the checkpoint of the next training."""
        if self.path is None:
            return None
        if self._begun == 0 and not self.path.exists():
            # It was deleted to begin anew: those after it are of what is not to be gone on with.
            self._remove_from(1)
        self._begun += 1
        return self._of(self._begun - 1)

    def clear(self) -> None:
        """Remove all checkpoints: the fit is done."""
        if self.path is not None:
            self._remove_from(0)

    def _remove_from(self, number: int) -> None:
        while (path := self._of(number)).exists():
            path.unlink()
            number += 1

    def _of(self, number: int) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


class Interrupt:
    """Whether the person at the keyboard asked to stop."""

    requested = False


@contextlib.contextmanager
def graceful_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a request that is met between two batches.

    The second acts at once. Outside the main thread, where Python takes no signals, none is
    changed.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
