"""Zip archives, which npz and xlsx files are, read within limits."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from annotrace.errors import InputError
from annotrace.labels.files import damage_as_error, size_of
from annotrace.limits import Limits

_ENCRYPTED = 0x1
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(RuntimeError, ValueError, struct.error, OverflowError),
)


@contextmanager
def open_archive(file: IO[bytes], source: str, limits: Limits) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive after checking the size of its members together.

    Damage that is found while members are read raises `InputError` too.
    """
    packed_size = size_of(file)
    with damage_as_error(source, "zip", *_DAMAGE), zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        limits.check_size(sum(member.file_size for member in members), packed_size, source)
        for member in members:
            _check_member(member, source)
        yield archive


def _check_member(member: zipfile.ZipInfo, source: str) -> None:
    if member.flag_bits & _ENCRYPTED:
        raise InputError(
            f"{source} is encrypted ({member.filename[:60]!r} needs a password). Save it without a "
            "password."
        )
