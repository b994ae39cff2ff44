"""The progress of long work: a bar on a terminal, lines in a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar


class NoProgress:
    """A display of how much of some work is done; this one shows nothing."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, done: int, note: str = "") -> None:
        """Show how much is done, with a note."""


class ProgressLines(NoProgress):
    """A line on standard error every ten seconds, for log files."""

    def __init__(self, total: int, noun: str) -> None:
        self.total, self.noun, self.last = total, noun, time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """Write a line if all is done, or if the previous line is ten seconds old."""
        if time.monotonic() - self.last >= 10 or done == self.total:
            self.last = time.monotonic()
            sys.stderr.write(f"{self.noun} {done}/{self.total}  {note}".rstrip() + "\n")


class ProgressBar(NoProgress):
    """A bar on the terminal with the note and the remaining time."""

    def __init__(self, total: int, noun: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar: Any = Progress(
            TextColumn(f"{noun} {{task.completed}}/{{task.total}}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> ProgressBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, done: int, note: str = "") -> None:
        """Move the bar."""
        self.bar.update(self.task, completed=done, description=note)


def show_progress(verbose: bool, total: int, noun: str) -> NoProgress:
    """Return a bar on a terminal, lines elsewhere or without rich, nothing if not verbose.

    Parameters
    ----------
    verbose : bool
    total : int
        The amount of work.
    noun : str
        The name of its unit: "epoch".
    """
    if not verbose:
        return NoProgress()
    if not sys.stderr.isatty():
        return ProgressLines(total, noun)
    try:
        return ProgressBar(total, noun)
    except ImportError:
        return ProgressLines(total, noun)


Part = TypeVar("Part")
Listener = Callable[[str, int, int, str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
# A stage that ends sooner is not shown.
SHORT_STAGE = 2.0


def report_stage(stage: str, done: int, total: int, note: str = "") -> None:
    """Report how far a stage of the work is, to whoever shows it; see `show_stages`.

    Parameters
    ----------
    stage : str
        What is done: "Reading labels".
    done, total : int
    note : str
    """
    listener = _LISTENER.get()
    if listener is not None:
        listener(stage, done, total, note)


@contextmanager
def show_stages(verbose: bool) -> Iterator[None]:
    """Show the stages that are reported inside the block, each with the time that it still takes.

    Parameters
    ----------
    verbose : bool
    """
    if not verbose:
        yield
        return
    stages = _Stages()
    token = _LISTENER.set(stages.update)
    try:
        yield
    finally:
        _LISTENER.reset(token)
        stages.close()


class StageParts:
    """A stage whose parts are done in any order, by several threads.

    Parameters
    ----------
    stage : str
    total : int
        The number of parts that are expected.
    """

    def __init__(self, stage: str, total: int) -> None:
        self.stage, self.total = stage, total
        self._done, self._lock = 0, Lock()

    def of(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Iterate over parts, and report each as done when the next one is asked for."""
        for part in parts:
            yield part
            self.finish_one()

    def finish_one(self) -> None:
        """Report that one more part is done."""
        with self._lock:
            self._done = min(self._done + 1, self.total)
            report_stage(self.stage, self._done, self.total)


class _Stages:
    """One display at a time, of a stage that takes longer than a moment."""

    def __init__(self) -> None:
        self.stage, self.begun = "", 0.0
        self.display: NoProgress | None = None

    def update(self, stage: str, done: int, total: int, note: str) -> None:
        """Show how far a stage is; a stage with another name has ended."""
        if stage != self.stage:
            self.close()
            self.stage, self.begun = stage, time.monotonic()
        if self.display is None and done < total and self._is_long():
            self.display = show_progress(True, total, stage).__enter__()
        if self.display is not None:
            self.display.update(done, note)
            if done >= total:
                self.close()

    def close(self) -> None:
        """Remove the display."""
        if self.display is not None:
            self.display.__exit__(None, None, None)
        self.stage, self.display = "", None

    def _is_long(self) -> bool:
        return time.monotonic() - self.begun >= SHORT_STAGE
