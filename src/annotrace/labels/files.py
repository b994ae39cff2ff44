"""Bytes, text and arrays from files and pipes, with errors that name the file and the damage."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError

if sys.platform == "win32":
    from pathlib import WindowsPath as OwnPath
else:
    from pathlib import PosixPath as OwnPath

GZIP, PARQUET, NPY, ZIP = b"\x1f\x8b", b"PAR1", b"\x93NUMPY", b"PK\x03\x04"
ARROW = b"\xff\xff\xff\xff"  # an IPC stream, as Hugging Face datasets saves it


class Piped(OwnPath):
    """A pipe or device, which can be read only once, with its content."""

    content: bytes


def standard_input() -> Piped:
    """Read standard input to its end."""
    if sys.stdin is None:
        raise InputError("Standard input is closed. Pipe labels into the command, or name a file.")
    piped = Piped("standard input")
    piped.content = sys.stdin.buffer.read()
    return piped


def check_file(path: str | Path) -> Path:
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
    piped.content = path.read_bytes()
    return piped


def open_file(path: str | Path) -> BufferedReader | io.BytesIO:
    """Open a file, or the content of a pipe, for reading."""
    path = check_file(path)
    return io.BytesIO(path.content) if isinstance(path, Piped) else path.open("rb")


@contextmanager
def open_unpacked(path: str | Path) -> Iterator[BufferedReader | io.BytesIO | gzip.GzipFile]:
    """Open a file for reading, unpacking gzip (detected by content)."""
    with open_file(path) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            yield gzip.GzipFile(fileobj=file) if packed else file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{path}: the gzip file is damaged ({error}). Copy or download it again."
            ) from None


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file, unpacking gzip."""
    with open_unpacked(path) as file:
        content = file.read()
    if not content.strip():
        raise InputError(f"{path} is empty.")
    return content


def decode_text(content: bytes, source: str, first_line: int = 1) -> str:
    """Decode UTF-8 with or without a byte order mark, content that starts at line `first_line`."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{source} is UTF-16 text. Save it as UTF-8.")
    if b"\x00" in content:
        raise InputError(
            f"{source} contains binary data in an unknown format. Expected text (csv, json, ...), "
            "xlsx, parquet, npy or npz."
        )
    content = content.removeprefix("\ufeff".encode())
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = first_line + content.count(b"\n", 0, error.start)
        raise InputError(
            f"{source}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8. Save the file "
            f"as UTF-8 (from Latin-1: iconv -f LATIN1 -t UTF-8)."
        ) from None


def load_arrays(file: IO[bytes], source: str) -> dict[str, NDArray[Any]]:
    """Load an npz file, or an npy file as an array named "", without pickle."""
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            if not all(f"{name}.npy" in loaded.zip.namelist() for name in loaded.files):
                raise InputError(
                    f"{source} is a zip archive, but not an npz or xlsx file. Unpack it first, or "
                    "save a spreadsheet as xlsx or csv."
                )
            return {name: loaded[name] for name in loaded.files}
    except InputError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"{source} contains Python objects, which are not loaded because pickle can run "
                "code. Save numbers or text: np.save(path, array.astype(str))."
            ) from None
        raise InputError(f"{source} is damaged: {_one_line(error)}.") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
