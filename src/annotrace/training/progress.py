"""What a person sees while a network trains."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol

from annotrace.training.history import Epoch


class Progress(Protocol):
    """Something that is told of every epoch."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def update(self, epoch: Epoch) -> None:
        """Show an epoch that is done."""
        ...


class Quiet:
    """Show nothing."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, epoch: Epoch) -> None:
        """Show nothing."""


class Lines(Quiet):
    """A line on standard error every ten seconds, for logs and where rich is not installed."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self.last = epochs, time.monotonic()

    def update(self, epoch: Epoch) -> None:
        """Show the epoch if it is time to, or the last."""
        if time.monotonic() - self.last >= 10 or epoch.number == self.epochs:
            self.last = time.monotonic()
            print(f"epoch {epoch.number}/{self.epochs}  {_figures(epoch)}", file=sys.stderr)


class Bar:
    """A bar on the terminal with the loss, the held-out likelihood and the time left."""

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

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, epoch: Epoch) -> None:
        """Move the bar to this epoch."""
        self.bar.update(self.task, completed=epoch.number, description=_figures(epoch))


def _figures(epoch: Epoch) -> str:
    held_out = "" if epoch.held_out is None else f"  held-out {epoch.held_out:.4f}"
    return f"loss {epoch.loss:.4f}{held_out}"


def show_progress(verbose: bool, epochs: int) -> Progress:
    """Choose a bar on a terminal, lines elsewhere, nothing when not verbose."""
    if not verbose:
        return Quiet()
    if not sys.stderr.isatty():
        return Lines(epochs)
    try:
        return Bar(epochs)
    except ImportError:
        return Lines(epochs)
