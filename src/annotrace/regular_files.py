"""Files of users, opened only if they are regular: no link, pipe, device or folder."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import IO

from annotrace.errors import AnnotraceError, InputError, RunError

_CHUNK = 2**20


def open_regular(path: Path, error: type[AnnotraceError] = RunError) -> IO[bytes]:
    """Open a regular file; a link, pipe, device or folder is an error of type `error`."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as failed:
        if path.is_symlink():
            raise error(f"{path} is a link, not a regular file. Replace it by a copy.") from None
        raise error(f"{path}: cannot be opened as a regular file ({failed.strerror}).") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error(f"{path} is not a regular file.")
    return os.fdopen(handle, "rb")


def open_within(path: Path, root: Path | None) -> IO[bytes]:
    """Open a regular file, which must be in the folder `root` after links are resolved."""
    target = Path(os.path.realpath(path))
    if root is not None and not target.is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"{path} is a link that leads out of {root}. Remove it, or follow links with "
            "follow_links=True (--follow-links)."
        )
    return open_regular(target, InputError)


def digest_file(file: IO[bytes]) -> bytes:
    """Return the sha256 of the rest of a file."""
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.digest()
