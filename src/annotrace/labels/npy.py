"""Arrays in npy and npz files, read without pickle and without trusting their headers."""

from __future__ import annotations

import math
import re
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.archives import open_archive
from annotrace.labels.files import NPY, size_of
from annotrace.limits import FEATURE_LIMITS, Limits

# numpy refuses longer headers too; those of plain arrays have 128 bytes.
_MAX_HEADER = 10_000
_MAX_DIMENSIONS = 32
_FIELDS = {
    "descr": re.compile(r"""['"]descr['"]\s*:\s*['"]([^'"]+)['"]"""),
    "fortran_order": re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)\b"""),
    # Python 2 wrote long integers, as in (3L, 4L).
    "shape": re.compile(r"""['"]shape['"]\s*:\s*\(([\s\dL,]*)\)"""),
}
_PLAIN_TYPE = re.compile(r"[<>|=]?[?biufcSUmMVO]\d{0,9}(\[\w{1,9}\])?")


def load_arrays(
    file: IO[bytes], source: str, limits: Limits = FEATURE_LIMITS
) -> dict[str, NDArray[Any]]:
    """Load an npz file, or an npy file as an array named "", without pickle."""
    is_npy = file.read(len(NPY)) == NPY
    file.seek(0)
    if is_npy:
        return {"": _read_array(file, size_of(file), source, limits)}
    with open_archive(file, source, limits) as archive:
        members = archive.infolist()
        if not all(member.filename.endswith(".npy") for member in members):
            raise InputError(
                f"{source} is a zip archive, but not an npz or xlsx file. Unpack it first, or "
                "save a spreadsheet as xlsx or csv."
            )
        arrays = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            where = f"{source}, array {name!r}"
            with archive.open(member) as content:
                arrays[name] = _read_array(content, member.file_size, where, limits)
        return arrays


def _read_array(file: IO[bytes], size: int, source: str, limits: Limits) -> NDArray[Any]:
    """Read an array from a file of `size` bytes, and allocate memory only if they suffice."""
    dtype, shape, order, n_header = _read_header(file, source)
    if 0 in shape:
        limits.check_columns(max(shape), source)
    n_values = math.prod(shape)
    n_bytes = n_values * dtype.itemsize
    if n_bytes > size - n_header:
        raise InputError(
            f"{source} is damaged: its header claims {n_bytes:,} bytes, but it has "
            f"{size - n_header:,}. Copy or save it again."
        )
    array = np.empty(n_values, dtype)
    _fill(array.view(np.uint8).data, file, source)
    _check_text(array, source)
    return array.reshape(shape, order=order)


def _fill(buffer: memoryview, file: IO[bytes], source: str) -> None:
    while len(buffer):
        n_read = file.readinto(buffer)  # type: ignore[attr-defined]
        if not n_read:
            raise InputError(f"{source} is damaged: it ends early. Copy or save it again.")
        buffer = buffer[n_read:]


def _check_text(array: NDArray[Any], source: str) -> None:
    """Check that text is valid Unicode, which Python would refuse later."""
    if array.dtype.kind == "U":
        codes = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        valid = not np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000)))
    elif array.dtype.kind == "S":
        valid = _is_utf8(array.tobytes())
    else:
        return
    if not valid:
        raise InputError(f"{source} contains text that is not Unicode. Save it as UTF-8.")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_header(file: IO[bytes], source: str) -> tuple[np.dtype[Any], tuple[int, ...], Any, int]:
    """Read the dtype, shape and order of an array, and the number of bytes before its values."""
    start = file.read(len(NPY) + 2)
    n_digits = 2 if start[len(NPY) :] == b"\x01\x00" else 4
    length = file.read(n_digits)
    n_header = min(int.from_bytes(length, "little"), _MAX_HEADER)
    header = file.read(n_header).decode("latin-1")
    found = {name: pattern.search(header) for name, pattern in _FIELDS.items()}
    descr, fortran, lengths = (match and match[1] for match in found.values())
    shape = tuple(int(n) for n in re.findall(r"\d{1,18}", lengths or ""))
    if (
        not start.startswith(NPY)
        or None in (descr, fortran, lengths)
        or len(shape) > _MAX_DIMENSIONS
    ):
        raise InputError(f"{source} is damaged: its header is not that of a plain array.")
    order = "F" if fortran == "True" else "C"
    return _dtype(str(descr), source), shape, order, len(start) + n_digits + n_header


def _dtype(name: str, source: str) -> np.dtype[Any]:
    if not _PLAIN_TYPE.fullmatch(name):  # numpy would parse anything else as Python.
        raise InputError(f"{source} is damaged: its header is not that of a plain array.")
    if name.endswith("O"):
        raise InputError(
            f"{source} contains Python objects, which are not loaded because pickle can run "
            "code. Save numbers or text: np.save(path, array.astype(str))."
        )
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        dtype = np.dtype("V")
    if dtype.kind not in "biufcSUmM" or dtype.itemsize == 0:
        raise InputError(f"{source} contains {name[:60]!r}, which are neither numbers nor text.")
    return dtype
