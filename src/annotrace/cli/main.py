"""`annotrace`, the command: its subcommands, and how errors are printed.

Only click is imported before a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any

import click

from annotrace.cli.aggregate import aggregate
from annotrace.cli.connect import connect
from annotrace.cli.convert import convert
from annotrace.cli.demo import demo
from annotrace.cli.encode import encode
from annotrace.cli.fit import fit
from annotrace.cli.judges import judges
from annotrace.cli.next_labels import next_labels
from annotrace.cli.predict import predict
from annotrace.cli.report import report
from annotrace.cli.reproduce import reproduce
from annotrace.cli.serve import serve
from annotrace.cli.simulate import simulate
from annotrace.errors import INTERRUPTED, TERMINATED, AnnotraceError, describe_os_error
from annotrace.version import __version__

BAD_INPUT = 2


class OneLineError(click.ClickException):
    """An error printed as `Error: ...` on standard error, in one line."""

    exit_code = BAD_INPUT

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Commands(click.Group):
    """A group that prints the library's errors, the system's, Ctrl-C and SIGTERM in one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as typed, for the command that resumes after Ctrl-C."""
        ctx.meta["annotrace.arguments"] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        terminated = Event()
        try:
            with terminate_as_ctrl_c(terminated):
                return super().invoke(ctx)
        except AnnotraceError as error:
            raise OneLineError(str(error)) from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise OneLineError(describe_os_error(error)) from None
        except KeyboardInterrupt as stop:
            click.echo(str(stop) or "Interrupted.", err=True)
            ctx.exit(TERMINATED if terminated.is_set() else INTERRUPTED)


@contextmanager
def terminate_as_ctrl_c(terminated: Event) -> Iterator[None]:
    """Handle SIGTERM as Ctrl-C is handled at that place, and set an event when it comes."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        terminated.set()
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # A command in the background of a script ignores Ctrl-C.
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    if current_thread() is not main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="annotrace")
def main() -> None:
    """Learn from noisy labels by many annotators.

    From a table of items, annotators and labels it estimates the true classes, trains a classifier,
    and measures how reliable each annotator is.

    \b
    Examples:
      annotrace demo
      annotrace fit labels.csv --features features.npz --out run
      annotrace fit labels.csv --images photos/ --out run
      annotrace predict run --features new.npz --out predictions.csv
      annotrace aggregate labels.csv --out run
      annotrace judges labels.csv --gold gold.csv
      annotrace report run --images photos/
      annotrace serve run
      annotrace next run --budget 500
      annotrace connect label-studio http://localhost:8080 --project 1 --out run
      annotrace convert label-studio.json --out labels.csv
      annotrace encode photos/ --encoder NAME_OR_PATH --out features.npz
      annotrace reproduce digits

    `annotrace COMMAND --help` describes each command.
    """


for command in (demo, fit, predict, aggregate, judges, report, serve, next_labels):
    main.add_command(command)
for command in (connect, convert, encode, simulate, reproduce):
    main.add_command(command)
