"""The progress of trainings: of one, or of all trainings of a fit in one display.

How many trainings a search makes is known only at most, and each may end early. The time that is
left is that of so many trainings as may still come, each as long as those done so far in the mean.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from annotrace.progress import NoProgress, show_progress

LINE_SECONDS = 10.0


class Estimate:
    """How far the trainings of a fit are, and how much time they still take.

    Attributes
    ----------
    done, total : int
        Trainings that are finished, and how many there are at most.
    """

    def __init__(self) -> None:
        self.done, self.total, self.share = 0, 1, 0.0
        self._n_timed, self._seconds, self._begun = 0, 0.0, time.monotonic()
        self._by: float | None = None

    def expect(self, n_left: int, by: float | None = None) -> None:
        """Set how many trainings follow at most, and when the last of them begins at most."""
        self.total, self._by = self.done + max(n_left, 1), by

    def begin(self) -> None:
        """Begin a training."""
        self.total, self.share = max(self.total, self.done + 1), 0.0
        if self.done == 0:
            self._begun = time.monotonic()

    def skip(self) -> None:
        """Count a training that a checkpoint has."""
        self.done, self._begun = self.done + 1, time.monotonic()

    def finish(self) -> None:
        """Finish a training."""
        now = time.monotonic()
        # From end to end, so with what is computed between trainings.
        self._seconds, self._n_timed = self._seconds + now - self._begun, self._n_timed + 1
        self.done, self.share, self._begun = self.done + 1, 0.0, now

    def seconds_left(self) -> float | None:
        """Return the time that all trainings still take, None before the first epoch."""
        passed = time.monotonic() - self._begun
        whole = passed / self.share if self.share else None
        each = self._seconds / self._n_timed if self._n_timed else whole
        if each is None:
            return None
        # Few trainings take all their epochs, so the usual time counts until it has passed.
        usual = each if whole is None or passed < each < whole else whole
        return max(usual - passed, 0.0) + self._seconds_after(each)

    def _seconds_after(self, each: float) -> float:
        """Return the time of the trainings after the present one."""
        after = (self.total - self.done - 1) * each
        if self._by is None:
            return after
        return min(after, max(self._by - time.monotonic(), 0.0) + each)


class _Lines:
    """A line on standard error every ten seconds, for log files."""

    def __init__(self) -> None:
        self.started = self.last = time.monotonic()

    def show(self, estimate: Estimate, note: str) -> None:
        now = time.monotonic()
        if now - self.last >= LINE_SECONDS:
            self.last = now
            left = describe_seconds(estimate.seconds_left())
            sys.stderr.write(f"{_count(estimate)}  {note}  {left} left\n")

    def close(self, estimate: Estimate, *, is_complete: bool) -> None:
        if is_complete:
            seconds = describe_seconds(time.monotonic() - self.started)
            sys.stderr.write(f"{estimate.done} trainings in {seconds}\n")


class _Bar:
    """A bar on the terminal, with the time that is left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        class TimeLeft(ProgressColumn):
            """The time until the end that is expected; it passes between two updates, too."""

            def render(self, task: Any) -> Text:
                ends = task.fields["ends"]
                left = None if ends is None else max(ends - time.monotonic(), 0.0)
                return Text(describe_seconds(left), style="progress.remaining")

        self.bar: Any = Progress(
            TextColumn("{task.fields[count]}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeLeft(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task("", total=1.0, count="training", ends=None)
        self.bar.start()

    def show(self, estimate: Estimate, note: str) -> None:
        left = estimate.seconds_left()
        self.bar.update(
            self.task,
            completed=(estimate.done + estimate.share) / estimate.total,
            description=note,
            count=_count(estimate),
            ends=None if left is None else time.monotonic() + left,
        )

    def close(self, estimate: Estimate, *, is_complete: bool) -> None:
        self.bar.stop()


class _OneOfSeveral(NoProgress):
    """A training in the display of all."""

    def __init__(self, several: _Several, epochs: int) -> None:
        self.several, self.epochs = several, epochs

    def __enter__(self) -> _OneOfSeveral:
        self.several.estimate.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.several.estimate.finish()

    def update(self, done: int, note: str = "") -> None:
        """Show how many epochs are done."""
        self.several.estimate.share = done / self.epochs
        self.several.show(f"epoch {done}/{self.epochs}  {note}".rstrip())


class _Several:
    """The display of all trainings of a fit, from the first epoch on."""

    def __init__(self) -> None:
        self.estimate = Estimate()
        self.display: _Lines | _Bar | None = None

    def show(self, note: str) -> None:
        if self.display is None:
            self.display = _make_display()
        self.display.show(self.estimate, note)

    def close(self, *, is_complete: bool) -> None:
        if self.display is not None:
            self.display.close(self.estimate, is_complete=is_complete)


_SEVERAL: ContextVar[_Several | None] = ContextVar("several", default=None)


@contextmanager
def show_trainings(verbose: bool) -> Iterator[None]:
    """Show all trainings inside the block in one display, with the time that is left.

    Parameters
    ----------
    verbose : bool
    """
    if not verbose:
        yield
        return
    several = _Several()
    token, is_complete = _SEVERAL.set(several), False
    try:
        yield
        is_complete = True
    finally:
        _SEVERAL.reset(token)
        several.close(is_complete=is_complete)


def expect_trainings(n_left: int, by: float | None = None) -> None:
    """Set how many trainings follow at most, for a display of several.

    Parameters
    ----------
    n_left : int
    by : float, optional
        The time, as `time.monotonic` has it, after which only one more begins.
    """
    if (several := _SEVERAL.get()) is not None:
        several.estimate.expect(n_left, by)


def skip_training() -> None:
    """Count a training that a checkpoint has, in a display of several."""
    if (several := _SEVERAL.get()) is not None:
        several.estimate.skip()


def show_training(verbose: bool, epochs: int) -> NoProgress:
    """Return the display of one training, or its part in a display of several.

    Parameters
    ----------
    verbose : bool
    epochs : int
        At most.
    """
    several = _SEVERAL.get()
    if several is None or not verbose:
        return show_progress(verbose, epochs, "epoch")
    return _OneOfSeveral(several, epochs)


def describe_seconds(seconds: float | None) -> str:
    """Describe a time as "0:01:05", an unknown one as "-:--:--"."""
    return "-:--:--" if seconds is None else str(timedelta(seconds=round(seconds)))


def _count(estimate: Estimate) -> str:
    return f"training {min(estimate.done + 1, estimate.total)}/{estimate.total}"


def _make_display() -> _Lines | _Bar:
    if sys.stderr.isatty():
        try:
            return _Bar()
        except ImportError:
            pass
    return _Lines()
