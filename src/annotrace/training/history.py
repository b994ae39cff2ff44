"""The history of a training, and its progress display."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Epoch:
    """The record of one epoch.

    Attributes
    ----------
    number : int
        Starts at 1.
    loss : float
        Mean training loss over the items.
    held_out : float or None
        Score on the held-out items; lower is better.
    seconds : float
        Time since the start of the training.
    """

    number: int
    loss: float
    held_out: float | None
    seconds: float


Callback: TypeAlias = Callable[[Epoch], bool | None]
"""Called after every epoch; training stops when it returns True."""


def best_epoch(history: list[Epoch]) -> Epoch | None:
    """Return the epoch with the lowest held-out score, or None without held-out items."""
    scored = [epoch for epoch in history if epoch.held_out is not None]
    return min(scored, key=lambda epoch: epoch.held_out or 0.0, default=None)


def held_out_loss(history: list[Epoch]) -> float:
    """Return the lowest held-out score, or 0 without held-out items."""
    best = best_epoch(history)
    return 0.0 if best is None or best.held_out is None else best.held_out


def join_histories(*histories: list[Epoch]) -> list[Epoch]:
    """Concatenate histories; numbers and times of each continue those of the one before."""
    joined: list[Epoch] = []
    for history in histories:
        number, seconds = (joined[-1].number, joined[-1].seconds) if joined else (0, 0.0)
        joined += [
            replace(epoch, number=epoch.number + number, seconds=epoch.seconds + seconds)
            for epoch in history
        ]
    return joined


class NoProgress:
    """A display that is updated after every epoch; this one shows nothing."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, epoch: Epoch) -> None:
        """Show a finished epoch."""


class ProgressLines(NoProgress):
    """A line on standard error every ten seconds, for log files."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self.last = epochs, time.monotonic()

    def update(self, epoch: Epoch) -> None:
        """Show the epoch if it is the last, or if the previous line is ten seconds old."""
        if time.monotonic() - self.last >= 10 or epoch.number == self.epochs:
            self.last = time.monotonic()
            line = f"epoch {epoch.number}/{self.epochs}  {_losses(epoch)}\n"
            sys.stderr.write(line)


class ProgressBar(NoProgress):
    """A bar on the terminal with the loss, the held-out score and the remaining time."""

    def __init__(self, epochs: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar: Any = Progress(
            TextColumn("epoch {task.completed}/{task.total}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task("", total=epochs)

    def __enter__(self) -> ProgressBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, epoch: Epoch) -> None:
        """Move the bar to this epoch."""
        self.bar.update(self.task, completed=epoch.number, description=_losses(epoch))


def _losses(epoch: Epoch) -> str:
    held_out = "" if epoch.held_out is None else f"  held-out {epoch.held_out:.4f}"
    return f"loss {epoch.loss:.4f}{held_out}"


def show_progress(verbose: bool, epochs: int) -> NoProgress:
    """Return a bar on a terminal, lines elsewhere or without rich, nothing if not verbose."""
    if not verbose:
        return NoProgress()
    if not sys.stderr.isatty():
        return ProgressLines(epochs)
    try:
        return ProgressBar(epochs)
    except ImportError:
        return ProgressLines(epochs)
