"""Processes that are killed at a chosen file operation, so that every moment can be tried."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}


def is_killed_at(number: int, folder: Path, work: Callable[[], None]) -> bool:
    """Run `work` in a process that is killed at an operation; return False if it ended before.

    Operations are those on files in the folder, and syncs, counted from 0.
    """
    left = number

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    status = _wait_for_child(folder, work, count)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def count_operations(folder: Path, work: Callable[[], None]) -> int:
    """Run `work` in a process, and return its number of operations."""
    reader, writer = os.pipe()
    assert _wait_for_child(folder, work, lambda: os.write(writer, b".")) == 0
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        return len(file.read())


def _wait_for_child(folder: Path, work: Callable[[], None], count: Callable[[], object]) -> int:
    """Run `work` in a child process that calls `count` at every operation; return its status."""
    child = os.fork()
    if child == 0:

        def audit(event: str, arguments: tuple[object, ...]) -> None:
            if event in _EVENTS and str(folder) in str(arguments[0]):
                count()

        sys.addaudithook(audit)
        # The system keeps what a killed process has written, so nothing need go to the disk.
        os.fsync = lambda handle: count()
        exit_after(work)
    return os.waitpid(child, 0)[1]


def exit_after(work: Callable[[], None]) -> NoReturn:
    """Run `work` as all that a child process does."""
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
    finally:
        os._exit(code)
