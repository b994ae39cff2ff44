"""The members of a tar file, found by reading its headers; nothing is unpacked.

The tar file may be hostile. Every number in a header is checked against the size of the file, and
anything after the last whole header but the mark of the end is an error, where `tarfile` would take
a damaged header for the end. Only regular members are listed: links, devices and folders are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, NamedTuple

from annotrace.errors import InputError

BLOCK = 512
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_REGULAR = (b"0", b"\0", b"7")
# Links, devices, folders and pipes.
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")
_LONG_NAME, _EXTENDED, _SPARSE = b"L", b"x", b"S"
# Names of members, and attributes that some programs store beside them.
_MAX_EXTENDED = 2**20


class Member(NamedTuple):
    """A regular member: its name, and where in the file its content is."""

    name: str
    offset: int
    n_bytes: int


def read_members(file: IO[bytes], source: str) -> Iterator[Member]:
    """Yield the regular members of a tar file; `source` is its name in messages."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(5).startswith(_COMPRESSED):
        raise InputError(
            f"{source} is compressed, so that an image could not be read without those before it. "
            "Decompress it, for example with gunzip: images hardly shrink."
        )
    place, extended = 0, dict[str, str]()
    while (header := _read_header(file, place, source)) is not None:
        kind, start = header[156:157], place + BLOCK
        n_bytes = 0 if kind in _WITHOUT_CONTENT else _number(header[124:136], place, source)
        if kind in _REGULAR and "size" in extended:
            n_bytes = int(extended["size"])
        if not 0 <= n_bytes <= size - start:
            raise _damaged(source, place, f"a member of {n_bytes:,} bytes exceeds the file")
        if kind == _SPARSE:
            raise _damaged(source, place, "sparse members are not read")
        if kind in _REGULAR:
            yield Member(extended.get("path") or _name(header), start, n_bytes)
        is_extended = kind in (_LONG_NAME, _EXTENDED)
        extended = _read_extended(file, start, n_bytes, kind, source) if is_extended else {}
        place = start + -(-n_bytes // BLOCK) * BLOCK


def _read_header(file: IO[bytes], place: int, source: str) -> bytes | None:
    """Return the header at a place, None at the end of the archive."""
    file.seek(place)
    header = file.read(BLOCK)
    if len(header) < BLOCK:
        raise _damaged(source, place, "it ends without the mark of its end")
    if header == bytes(BLOCK):
        return None
    # The checksum is of the header with spaces in its place.
    total = sum(header[:148]) + 8 * ord(" ") + sum(header[156:])
    if _number(header[148:156], place, source) != total:
        raise _damaged(source, place, "the checksum of a header is wrong")
    return header


def _read_extended(
    file: IO[bytes], start: int, n_bytes: int, kind: bytes, source: str
) -> dict[str, str]:
    """Return what precedes a header: a long name (GNU), or attributes (POSIX)."""
    if n_bytes > _MAX_EXTENDED:
        raise _damaged(source, start - BLOCK, f"a name or attributes of {n_bytes:,} bytes")
    file.seek(start)
    content = file.read(n_bytes)
    if kind == _LONG_NAME:
        return {"path": _decode(content.rstrip(b"\0"))}
    return _parse_attributes(content, source, start - BLOCK)


def _parse_attributes(content: bytes, source: str, place: int) -> dict[str, str]:
    """Return the path and the size among records: a length, " key=value" and a line feed."""
    found = {}
    while content:
        digits, _, rest = content.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        record = rest[: max(0, length - len(digits) - 1)]
        key, equals, value = record.partition(b"=")
        if not equals or not record.endswith(b"\n"):
            raise _damaged(source, place, "its attributes are malformed")
        found[_decode(key)] = _decode(value[:-1])
        content = content[length:]
    size = found.get("size", "0")
    if not (size.isascii() and size.isdigit() and len(size) < 20):
        raise _damaged(source, place, "its attributes are malformed")
    return {key: found[key] for key in ("path", "size") if key in found}


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _decode(prefix + b"/" + name if prefix else name)


def _number(field: bytes, place: int, source: str) -> int:
    """Return a number in octal digits, or in binary if its first bit is set."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.replace(b"\0", b" ").strip()
    try:
        return int(digits or b"0", 8)
    except ValueError:
        raise _damaged(source, place, "a number in a header is malformed") from None


def _decode(name: bytes) -> str:
    return name.decode(errors="replace")


def _damaged(source: str, place: int, reason: str) -> InputError:
    return InputError(
        f"{source}: damaged or not a tar file, at byte {place:,} ({reason}). Copy it again."
    )
