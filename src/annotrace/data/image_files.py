"""Where the bytes of an image are: a file, or a member of a tar file."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from annotrace.errors import InputError
from annotrace.regular_files import digest_file, open_within


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A file that holds an image, or a member of a tar file that does.

    All fields are plain values, so that they can be sent to another process as JSON.

    Parameters
    ----------
    path : str
    root : str, optional
        The folder that must contain the file, after links are resolved.
    member : str, optional
        The name of the member, if the file is a tar file.
    offset, n_bytes : int
        Where the content of the member begins, and its length; `n_bytes` is -1 for a whole file.
    name : str, optional
        What messages call it, if its path means nothing to the user.
    """

    path: str
    root: str | None = None
    member: str | None = None
    offset: int = 0
    n_bytes: int = -1
    name: str | None = None

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        return self.path if self.member is None else f"{self.path}, member {self.member!r}"

    def open(self) -> IO[bytes]:
        """Open the content; only a regular file below `root` is opened."""
        file = open_within(Path(self.path), None if self.root is None else Path(self.root))
        if self.member is None:
            return file
        if os.fstat(file.fileno()).st_size < self.offset + self.n_bytes:
            file.close()
            raise InputError(f"{self}: the file was cut since it was opened first. Replace it.")
        return io.BufferedReader(_Part(file, self.offset, self.n_bytes))

    def size(self) -> int:
        """Return the number of bytes; 0 if the file is gone, which is an error once it is read."""
        if self.member is not None:
            return self.n_bytes
        try:
            return os.stat(self.path).st_size  # noqa: PTH116, a Path per image takes time
        except OSError:
            return 0

    def digest(self) -> bytes:
        """Return the sha256 of the content."""
        with self.open() as file:
            return digest_file(file)


class _Part(io.RawIOBase):
    """A part of a file, which can be read and seeked like a file."""

    def __init__(self, file: IO[bytes], offset: int, n_bytes: int) -> None:
        self.file, self.offset, self.n_bytes, self.place = file, offset, n_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.n_bytes}[whence]
        if start + offset < 0:
            raise ValueError(f"negative seek position {start + offset}")
        self.place = start + offset
        return self.place

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        wanted = max(0, min(len(buffer), self.n_bytes - self.place))
        self.file.seek(self.offset + self.place)
        chunk = self.file.read(wanted)
        buffer[: len(chunk)] = chunk
        self.place += len(chunk)
        return len(chunk)

    def close(self) -> None:
        self.file.close()
        super().close()
