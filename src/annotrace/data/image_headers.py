"""Sizes of images that their Pillow decoder would not check in time.

The decoders of GIF and WebP take memory for the pixels as soon as they open a file, and that of
TIFF takes it for every entry of a directory and for every tile. Here the size is read from the
first bytes alone.
"""

from __future__ import annotations

import os
import struct
from typing import IO

# More than any page of 64 million pixels needs: 250,000 tiles of 16 x 16.
_MAX_VALUES = 2**20
_MAX_PAGES = 10_000
# Types of TIFF whose values Pillow keeps as bytes.
_BYTE_TYPES = (1, 2, 7)
_WIDTH, _LENGTH, _TILE_WIDTH, _TILE_LENGTH = 256, 257, 322, 323


def gif_size(file: IO[bytes]) -> tuple[int, int]:
    """Return the width and height that the screen and the first frame of a GIF file take."""
    width, height, flags = struct.unpack("<HHB", _read(file, 13)[6:11])
    if flags & 0x80:
        file.seek(3 << (flags & 7) + 1, os.SEEK_CUR)
    while (block := file.read(1)) not in (b"", b";"):
        if block == b"!":
            file.seek(1, os.SEEK_CUR)
            while length := _read(file, 1)[0]:
                file.seek(length, os.SEEK_CUR)
        elif block == b",":
            left, top, frame_width, frame_height = struct.unpack("<4H", _read(file, 8))
            return max(width, left + frame_width), max(height, top + frame_height)
    return width, height


def webp_size(file: IO[bytes]) -> tuple[int, int]:
    """Return the width and height of a WebP file."""
    start = _read(file, 30)
    kind = start[12:16]
    if kind == b"VP8X":
        return tuple(1 + int.from_bytes(start[at : at + 3], "little") for at in (24, 27))  # type: ignore[return-value]
    if kind == b"VP8L":
        bits = int.from_bytes(start[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", start[26:30])
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("it has no header of WebP")


def tiff_size(file: IO[bytes]) -> tuple[int, int]:
    """Return the width and height of the first page of a TIFF file, or of its tiles if larger."""
    order = "<" if _read(file, 4).startswith(b"II") else ">"
    pages: list[dict[int, int]] = []
    (offset,) = struct.unpack(f"{order}I", _read(file, 4))
    while offset and len(pages) < _MAX_PAGES:
        file.seek(offset)
        (n_entries,) = struct.unpack(f"{order}H", _read(file, 2))
        pages.append(_read_entries(_read(file, 12 * n_entries), order))
        (offset,) = struct.unpack(f"{order}I", file.read(4) or bytes(4))
    if offset:
        raise ValueError(f"it has more than {_MAX_PAGES:,} pages")
    first = pages[0] if pages else {}
    page = first.get(_WIDTH, 0), first.get(_LENGTH, 0)
    tile = first.get(_TILE_WIDTH, 0), first.get(_TILE_LENGTH, 0)
    return max(page, tile, key=lambda size: size[0] * size[1])


def _read_entries(content: bytes, order: str) -> dict[int, int]:
    """Return the first value of each entry of a directory that has sizes."""
    found = {}
    for tag, kind, n_values, value in struct.iter_unpack(f"{order}HHI4s", content):
        if kind not in _BYTE_TYPES and n_values > _MAX_VALUES:
            raise ValueError(f"the entry {tag} of its directory has {n_values:,} values")
        if tag in (_WIDTH, _LENGTH, _TILE_WIDTH, _TILE_LENGTH):
            if kind not in (3, 4) or n_values != 1:
                raise ValueError("its size is not a whole number")
            found[tag] = struct.unpack_from(f"{order}{'H' if kind == 3 else 'I'}", value)[0]
    return found


def _read(file: IO[bytes], n_bytes: int) -> bytes:
    content = file.read(n_bytes)
    if len(content) < n_bytes:
        raise ValueError("its header is incomplete")
    return content
