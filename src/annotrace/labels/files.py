"""Bytes and text from files and pipes, with errors that name the file and the damage."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO

from annotrace.errors import InputError
from annotrace.limits import LABEL_LIMITS, Limits

if sys.platform == "win32":
    from pathlib import WindowsPath as OwnPath
else:
    from pathlib import PosixPath as OwnPath

GZIP, PARQUET, NPY, ZIP = b"\x1f\x8b", b"PAR1", b"\x93NUMPY", b"PK\x03\x04"
ARROW = b"\xff\xff\xff\xff"  # an IPC stream, as Hugging Face datasets saves it
SQLITE = b"SQLite format 3\x00"
BINARY = (GZIP, PARQUET, NPY, ZIP, ARROW, SQLITE)

BOM = b"\xef\xbb\xbf"
EXPORT_OR_OMIT = "Copy or export it again, or leave it out."
"""The remedy for a file without content, which is often one of several."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_CHUNK = 2**20


class Piped(OwnPath):
    """A pipe or device, which can be read only once, with its content."""

    content: bytes


def standard_input(limits: Limits = LABEL_LIMITS) -> Piped:
    """Read standard input to its end."""
    if sys.stdin is None:
        raise InputError("Standard input is closed. Pipe labels into the command, or name a file.")
    piped = Piped("standard input")
    piped.content = _read_stream(sys.stdin.buffer, "standard input", limits)
    return piped


def check_file(path: str | Path, limits: Limits = LABEL_LIMITS) -> Path:
    """Check that a file exists, and read it if it is a pipe."""
    if isinstance(path, Piped):
        return path
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a file.")
    if path.is_file():
        return path
    piped = Piped(path)
    with path.open("rb") as stream:
        piped.content = _read_stream(stream, str(path), limits)
    return piped


def _read_stream(stream: IO[bytes], source: str, limits: Limits) -> bytes:
    """Read a stream, which may be endless like a device, up to the limit of size."""
    chunks = [stream.read(_CHUNK)]
    check_known(chunks[0], source)
    size = 0
    while chunks[-1]:
        size += len(chunks[-1])
        limits.check_size(size, size, source)
        chunks.append(stream.read(_CHUNK))
    return b"".join(chunks)


def check_known(start: bytes, source: str) -> None:
    """Check that content starts as text or as a known binary format."""
    is_known = start.startswith((*BINARY, *_UTF16)) or is_duckdb(start)
    if b"\x00" in start and not is_known:
        raise InputError(_unknown(source))


def is_duckdb(start: bytes) -> bool:
    """Whether content starts as a DuckDB database does: with a checksum of 8 bytes, and DUCK.

    Leading blanks may be missing.
    """
    return b"DUCK" in start[:12]


def _unknown(source: str) -> str:
    return (
        f"{source} contains binary data in an unknown format. Expected text (csv, json, ...), "
        "xlsx, parquet, npy, npz, SQLite or DuckDB."
    )


def open_file(path: str | Path, limits: Limits = LABEL_LIMITS) -> BufferedReader | io.BytesIO:
    """Open a file, or the content of a pipe, for reading."""
    path = check_file(path, limits)
    return io.BytesIO(path.content) if isinstance(path, Piped) else path.open("rb")


@contextmanager
def damage_as_error(source: str, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Raise `InputError` for errors and panics of the library that reads a kind of file."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        # A panic of a library in Rust is no Exception, and its class cannot be imported.
        if not isinstance(error, errors) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error).strip() or type(error).__name__).split("\n", 1)[0].rstrip(".")
        raise InputError(
            f"{source} is a damaged {kind} file ({reason}). Copy or export it again."
        ) from None


def has_start(path: Path, start: bytes) -> bool:
    """Whether a file on disk, no pipe, begins with some bytes, not packed."""
    if isinstance(path, Piped):
        return False
    with path.open("rb") as file:
        return file.read(len(start)) == start


def is_packed(path: Path) -> bool:
    """Whether a file is gzipped, or is a pipe, which can be read once only."""
    return isinstance(path, Piped) or has_start(path, GZIP)


def size_of(file: IO[bytes]) -> int:
    """Return the number of bytes of a file, and go to its start."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


@contextmanager
def open_unpacked(
    path: str | Path, limits: Limits = LABEL_LIMITS
) -> Iterator[BufferedReader | io.BytesIO]:
    """Open a file for reading, unpacking gzip (detected by content) as far as limits allow."""
    with open_file(path, limits) as file:
        size = size_of(file)
        limits.check_size(size, size, str(path))
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            yield BufferedReader(_Unpacked(file, str(path), limits), _CHUNK) if packed else file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{path}: the gzip file is damaged ({error}). Copy or download it again."
            ) from None


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, whose size is checked while it is unpacked."""

    def __init__(self, file: IO[bytes], source: str, limits: Limits) -> None:
        self._packed, self._content = file, gzip.GzipFile(fileobj=file)
        self._source, self._limits = source, limits

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n_read = self._content.readinto(buffer)
        self._limits.check_size(self._content.tell(), self._packed.tell(), self._source)
        return n_read

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(_CHUNK), b""))


def check_unpacked(path: str | Path, limits: Limits = LABEL_LIMITS) -> None:
    """Check the size of a file after unpacking, which is much faster than parsing it."""
    with open_unpacked(path, limits) as file:
        while file.read(_CHUNK):
            pass


def read_bytes(path: str | Path, limits: Limits = LABEL_LIMITS) -> bytes:
    """Read a whole file, unpacking gzip."""
    with open_unpacked(path, limits) as file:
        content = file.read()
    if not content or content.isspace():
        raise InputError(f"{path} is empty. {EXPORT_OR_OMIT}")
    return content


def decode_text(content: bytes, source: str, first_line: int = 1) -> str:
    """Decode UTF-8 with or without a byte order mark, content that starts at line `first_line`."""
    if content.startswith(_UTF16):
        raise InputError(f"{source} is UTF-16 text. Save it as UTF-8.")
    if b"\x00" in content:
        raise InputError(_unknown(source))
    content = content.removeprefix("\ufeff".encode())
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = first_line + content.count(b"\n", 0, error.start)
        raise InputError(
            f"{source}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8. Save the file "
            f"as UTF-8 (from Latin-1: iconv -f LATIN1 -t UTF-8)."
        ) from None
