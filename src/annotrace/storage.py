"""Files of tensors and JSON, written, and read without trusting what they hold.

Runs and checkpoints are such files. They are never pickled, and only regular files are opened: no
link, pipe or device.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.errors import InputError, RunError, first_few
from annotrace.regular_files import open_regular

# The names that safetensors has for number types.
_NAMES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.complex64: "C64",
}

MAX_DIGITS = 40
"""Enough for a seed of 128 bits; longer integers overflow a float."""


class Stored(NamedTuple):
    """The content of a safetensors file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of limited size; a link, pipe, device or folder is an error."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise RunError(f"{path} has {size:,} bytes, more than {max_bytes:,}.")
        # `read(max_bytes)` would allocate as much, however small the file is.
        return file.read(size)


def pack_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the content of a safetensors file.

    `safetensors.torch.save` keeps a ctypes type for every size of tensor that it has saved, so the
    memory of a process that saves often would grow, and it rejects tensors that share memory.
    """
    return b"".join(tensor_parts(tensors, metadata))


def tensor_parts(
    tensors: Mapping[str, Tensor | NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """Iterate over the parts of a safetensors file: its header, and each tensor.

    Arrays are not copied, as tensors of read-only ones would be.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    # The widest numbers first, so that all are aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        place = {"shape": list(tensor.shape), "data_offsets": [start, end]}
        header[name] = {"dtype": _dtype_name(tensor), **place}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        tensor = tensors[name]
        if isinstance(tensor, Tensor):
            tensor = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        yield np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data


def _dtype_name(tensor: Tensor | NDArray[Any]) -> str:
    if isinstance(tensor, Tensor):
        return _NAMES[tensor.dtype]
    return _NAMES[torch.from_numpy(np.empty(0, tensor.dtype)).dtype]


def parse_json(content: bytes | str, source: str) -> Any:
    """Parse JSON whose numbers are finite, integers of at most 40 digits."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        return json.loads(text, parse_float=_finite, parse_constant=_finite, parse_int=_integer)
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
        # The reason may quote names in the file, which may have control characters.
        reason = ascii(str(error)[:200])
        raise RunError(f"{source}: damaged, it is not a safetensors file ({reason}).") from None
    return Stored(tensors, header.get("__metadata__") or {})


def join_parts(**parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of several parts, each named "part.name"."""
    return {f"{part}.{name}": each for part, named in parts.items() for name, each in named.items()}


def select_part(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """Return the tensors of one part of what `join_parts` returned, by their names in it."""
    prefix = f"{part}."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def check_same_names(
    given: Mapping[str, Any], wanted: Mapping[str, Any], *, optional: tuple[str, ...] = ()
) -> None:
    """Raise an `InputError` for names that are missing or unknown."""
    missing = sorted(wanted.keys() - given.keys() - set(optional))
    if missing:
        raise InputError(f"It lacks {', '.join(missing)}.")
    unknown = sorted(given.keys() - wanted.keys())
    if unknown:
        raise InputError(f"It has unknown fields: {first_few(unknown)}.")


def check_tensors(given: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` if tensors cannot take the place of others.

    Parameters
    ----------
    given : mapping from name to Tensor
        Read from a file.
    wanted : mapping from name to Tensor
        Of the same names, shapes and types. Where it has an `nn.Parameter`, as in
        ``state_dict(keep_vars=True)``, the tensor given must be finite.
    """
    check_same_names(given, wanted)
    for name, like in wanted.items():
        tensor = given[name]
        if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
            raise InputError(
                f"Expected `{name}` to be {like.dtype} of shape {tuple(like.shape)}, but got "
                f"{tensor.dtype} of shape {tuple(tensor.shape)}."
            )
        if isinstance(like, nn.Parameter) and not bool(tensor.isfinite().all()):
            raise InputError(f"Expected `{name}` to be finite.")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:MAX_DIGITS]} is not a finite number")
    return value


def _integer(number: str) -> int:
    if len(number) > MAX_DIGITS:
        raise ValueError(f"an integer has {len(number):,} digits, more than {MAX_DIGITS}")
    return int(number)
