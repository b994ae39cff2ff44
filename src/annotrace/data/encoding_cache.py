"""The cache of encodings: one file per model, one row of numbers per text or image."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.data.byte_store import MAX_KEYS, ByteStore
from annotrace.errors import InputError

Cache: TypeAlias = str | Path | Literal[False] | None
"""A folder, None for the default one, or False for no cache."""

Rows: TypeAlias = NDArray[np.float32]

_STORED = np.dtype("<f4")


def cache_folder(cache: Cache) -> Path | None:
    """Return the folder of a cache, None if there is to be none."""
    if cache is False:
        return None
    return default_cache_folder() if cache is None else Path(cache)


def default_cache_folder() -> Path:
    """Return the folder ``annotrace/encodings`` among the caches of the user.

    They are in ``XDG_CACHE_HOME`` or ``~/.cache``; on macOS in ``~/Library/Caches``, and on Windows
    in ``LOCALAPPDATA``.
    """
    if sys.platform == "win32":
        variable, default = "LOCALAPPDATA", Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        variable, default = "", Path.home() / "Library" / "Caches"
    else:
        variable, default = "XDG_CACHE_HOME", Path.home() / ".cache"
    caches = Path(os.environ.get(variable) or default)
    # A relative path is to be ignored, by the specification of XDG_CACHE_HOME.
    return (caches if caches.is_absolute() else default) / "annotrace" / "encodings"


class EncodingCache:
    """The rows that one encoder has computed, by the digest of what was encoded.

    Parameters
    ----------
    folder : Path
    fingerprint : str
        That of the encoder, which is the name of the file.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.store = ByteStore(folder / f"{fingerprint}.sqlite")

    def read(self, keys: Sequence[bytes]) -> tuple[NDArray[np.int64], Rows]:
        """Return the positions of the keys that are cached, and their rows.

        Returns
        -------
        positions : ndarray of shape (n_cached,)
        rows : ndarray of shape (n_cached, n_features)
        """
        positions, values = list[int](), list[bytes]()
        for start in range(0, len(keys), MAX_KEYS):
            some = keys[start : start + MAX_KEYS]
            found = self.store.get(some)
            here = [place for place, key in enumerate(some) if _is_row(found.get(key, b""))]
            positions += [start + place for place in here]
            values += [found[some[place]] for place in here]
        return np.array(positions, np.int64), self._stack(values)

    def write(self, keys: Sequence[bytes], rows: Rows) -> None:
        """Store rows, shape (n_keys, n_features), in one transaction."""
        stored = (row.astype(_STORED).tobytes() for row in rows)
        self.store.put(zip(keys, stored, strict=True))

    def _stack(self, values: list[bytes]) -> Rows:
        widths = sorted({len(value) // _STORED.itemsize for value in values})
        if len(widths) > 1:
            raise InputError(
                f"{self.store.path} has rows of {widths[0]:,} and of {widths[-1]:,} numbers, but "
                "one encoder returns rows of one length. Delete the file."
            )
        rows = np.empty((len(values), *(widths or [0])), np.float32)
        for row, value in zip(rows, values, strict=True):
            row[:] = np.frombuffer(value, _STORED)
        return rows


def _is_row(value: bytes) -> bool:
    return len(value) > 0 and len(value) % _STORED.itemsize == 0
