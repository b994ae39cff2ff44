"""What a person sees of a sweep: a bar on a terminal with rich, a line a run elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from annotrace.experiments.runs import Result, Run


class Lines:
    """A line on standard error for each run, with the time left.

    Parameters
    ----------
    total, done : int
        Runs in all, and those that were there before.
    """

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self.before = total, done, done
        self.started = time.monotonic()

    def __enter__(self) -> Lines:
        if self.before:
            self.say(f"{self.before} of {self.total} runs are there already.")
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, run: Run) -> None:
        """Note that a run begins."""

    def finish(self, run: Run, result: Result) -> None:
        """Show a run that is done."""
        self.done += 1
        self.say(f"{self._place()} {_name(run)}: {_figures(result)}  {self._left()}")

    def skip(self, run: Run) -> None:
        """Show a run that another process did."""
        self.done += 1
        self.before += 1
        self.say(f"{self._place()} {_name(run)}: done by another process")

    def fail(self, run: Run, error: Exception) -> None:
        """Show a run that went wrong."""
        self.say(f"failed: {_name(run)}: {error}")

    def say(self, text: str) -> None:
        """Show a line."""
        print(text, file=sys.stderr, flush=True)

    def _place(self) -> str:
        return f"[{self.done:{len(str(self.total))}}/{self.total}]"

    def _left(self) -> str:
        each = (time.monotonic() - self.started) / (self.done - self.before)
        left = each * (self.total - self.done)
        return f"({left / 60:.0f} min left)" if left >= 90 else f"({left:.0f} s left)"


class Bar(Lines):
    """A bar over the whole sweep, with the last run beside it."""

    def __init__(self, total: int, done: int) -> None:
        super().__init__(total, done)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        columns = (MofNCompleteColumn(), BarColumn(), Remaining(), TextColumn("{task.description}"))
        self.bar: Any = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=total, completed=done)

    def __enter__(self) -> Bar:
        self.bar.start()
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, run: Run) -> None:
        """Show which run is on its way."""
        self.bar.update(self.task, description=_name(run))

    def finish(self, run: Run, result: Result) -> None:
        """Move the bar, and leave the line above it."""
        super().finish(run, result)
        self.bar.update(self.task, completed=self.done)

    def skip(self, run: Run) -> None:
        """Move the bar for a run that another process did."""
        super().skip(run)
        self.bar.update(self.task, completed=self.done)

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        self.bar.console.print(text, highlight=False, markup=False)


def show_sweep(total: int, done: int) -> Lines:
    """Choose a bar on a terminal, lines elsewhere and where rich is not installed."""
    if not sys.stderr.isatty():
        return Lines(total, done)
    try:
        return Bar(total, done)
    except ImportError:
        return Lines(total, done)


def _name(run: Run) -> str:
    skill = "" if run.skill is None else f" {run.skill:g}"
    labels = "1 label" if run.density == 1 else f"{run.density} labels"
    return f"{run.method}, {run.crowd}{skill}, {labels}, seed {run.seed}"


def _figures(result: Result) -> str:
    error = result["cm_error"]
    shown = "" if error is None else f", CM error x 100 {100 * error:.2f}"
    seconds = f", {result['seconds']:.1f} s" if "seconds" in result else ""
    return f"accuracy {result['accuracy']:.4f}{shown}{seconds}"
