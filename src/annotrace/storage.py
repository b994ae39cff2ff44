"""Files of tensors and JSON, read without trusting what they hold.

Runs and checkpoints are such files. They are never pickled, and only regular files are opened: no
link, pipe or device.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import IO, Any, NamedTuple

from torch import Tensor

from annotrace.errors import RunError


class Stored(NamedTuple):
    """The content of a safetensors file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file; a link, pipe, device or folder is an error."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise RunError(f"{path}: cannot be opened as a regular file ({error.strerror}).") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RunError(f"{path} is not a regular file.")
    return os.fdopen(handle, "rb")


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of limited size; a link, pipe, device or folder is an error."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise RunError(f"{path} has {size:,} bytes, more than {max_bytes:,}.")
        return file.read(max_bytes)


def parse_json(content: bytes | str, source: str) -> Any:
    """Parse JSON whose numbers are finite."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{source}: damaged, it is not JSON ({error}).") from None


def parse_tensors(content: bytes, source: str) -> Stored:
    """Parse a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(content)
        size = int.from_bytes(content[:8], "little")
        header = parse_json(content[8 : 8 + size], source)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise RunError(f"{source}: damaged, it is not a safetensors file ({error}).") from None
    return Stored(tensors, header.get("__metadata__") or {})


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a finite number")
    return value
