"""Files that are written whole or not at all, also when the power fails or the disk is full."""

from __future__ import annotations

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from annotrace.errors import InputError


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` on success and is deleted on failure.

    The content is on disk before it replaces the previous file.
    """
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}. Create it first.")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    with named_errors(path):
        try:
            with partial.open("xb") as file:
                yield file
                sync_file(file)
            partial.replace(path)
        finally:
            # Only a failure leaves it behind. Its name is known before it exists, so that no
            # interrupt comes between the two.
            partial.unlink(missing_ok=True)
        sync_folder(path.parent)


def remove_partial(path: Path) -> None:
    """Remove what a process that was killed in `atomic_write` left behind."""
    for partial in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 16}.partial"):
        partial.unlink(missing_ok=True)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Add the name of a file to errors of the system that lack it, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno and (error.filename is None or str(error.filename).endswith(".partial")):
            error.filename, error.filename2 = str(path), None
        raise


def sync_file(file: IO[bytes]) -> None:
    """Write what is buffered of an open file to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, where the system can."""
    if os.name == "nt":  # Windows opens no folders.
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL):  # Network file systems may refuse it.
            raise
    finally:
        os.close(handle)
