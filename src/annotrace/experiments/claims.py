"""Processes that share a folder: one writes at a time, and no two do the same run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

if sys.platform != "win32":
    import fcntl


def lock(file: IO[Any], wait: bool = True) -> bool:
    """Lock an open file until it is closed; False if another process has it.

    Where files cannot be locked every process is told True.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def claim(folder: Path, key: str, wait: bool) -> Iterator[bool]:
    """Say whether a run may be done here, and keep other processes from it until it is.

    Parameters
    ----------
    folder : Path
    key : str
        Of the run.
    wait : bool
        Wait for a process that is at it, rather than give False. It may have finished the run.
    """
    if sys.platform == "win32":
        yield True
        return
    # A process that was killed leaves this file, but not the lock.
    mark = folder / f".{key.rpartition('/')[2]}.running"
    with mark.open("w") as file:
        mine = lock(file, wait)
        try:
            yield mine
        finally:
            if mine:
                mark.unlink(missing_ok=True)
