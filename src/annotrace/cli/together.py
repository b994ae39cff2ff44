"""Commands that torchrun starts as several processes: who reads, who prints, and how they end."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING

from annotrace.errors import AnnotraceError

if TYPE_CHECKING:
    from annotrace.cli.label_files import LabelFiles
    from annotrace.distributed import Processes
    from annotrace.labels import LabelTable
    from annotrace.labels.columns import Layout
    from annotrace.labels.reading import Imported

FAILED = 1
"""Exit code of processes that leave it to another one to say why the run has ended."""


@contextmanager
def together() -> Iterator[Processes]:
    """Join the processes of this run; only the first one prints, and one says what went wrong."""
    from annotrace.distributed import joined

    with joined() as processes, ExitStack() as silence:
        if not processes.is_first:
            silence.enter_context(redirect_stdout(io.StringIO()))
            silence.enter_context(redirect_stderr(io.StringIO()))
        try:
            yield processes
        except (AnnotraceError, OSError, KeyboardInterrupt):
            if processes.size > 1:
                _leave_to_one(processes)
            raise


def resume_command(arguments: list[str]) -> str:
    """Return the command that resumes an interrupted one, given its arguments as typed."""
    import shlex

    typed = [word for word in arguments if word != "--resume"]
    size = int(os.environ.get("WORLD_SIZE", "1"))
    start = ["annotrace"] if size < 2 else ["torchrun", "...", "-m", "annotrace"]
    return shlex.join([*start, *typed, "--resume"])


def read_labels(
    labels: LabelFiles, processes: Processes
) -> tuple[LabelTable | None, Layout | Imported | None]:
    """Read label files; the first process gets the table of all labels, others None.

    Each process reads its own rows of parquet files. The first one reads other files alone.
    """
    from annotrace.labels.reading_together import answer_first, others_answer, share_columns

    if not processes.is_first:
        answer_first(labels.open, processes)
        return None, None
    with others_answer(processes):
        return labels.read(partial(share_columns, processes=processes))


def read_everywhere(
    labels: LabelFiles, processes: Processes
) -> tuple[LabelTable, Layout | Imported | None]:
    """Read label files; every process gets the table of all labels."""
    table, used = read_labels(labels, processes)
    table = processes.from_first(lambda: table)
    assert table is not None
    return table, used


def _leave_to_one(processes: Processes) -> None:
    """Return in the one process that is to print why the run ends; exit in others."""
    # torchrun sends SIGTERM to all that are left, which has nothing to say any more.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if not processes.elect("message"):
        raise SystemExit(FAILED) from None
