"""A file of values by key, which several processes share and a killed one leaves whole."""

from __future__ import annotations

import sqlite3
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from annotrace.errors import InputError

MAX_KEYS = 500
"""The largest number of keys that `ByteStore.get` takes; SQLite limits the length of a query."""

_WAIT_SECONDS = 60
_CHECKSUM_BYTES = 4

Result = TypeVar("Result")


class ByteStore:
    """Values by key in an SQLite file, which is created if it does not exist.

    Each value is stored with a checksum of it and its key; one that does not match counts as
    missing. A file that is damaged is renamed to ``NAME.damaged`` with a warning, and a new one is
    started: what it held can be computed again.

    Parameters
    ----------
    path : Path
        Missing folders above it are created, for the user alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that have one, of at most `MAX_KEYS`."""
        places = ",".join("?" * len(keys))
        query = f"SELECT key, value FROM entries WHERE key IN ({places})"
        rows = self._run(lambda connection: connection.execute(query, keys).fetchall())
        return {key: value[_CHECKSUM_BYTES:] for key, value in rows if _is_whole(key, value)}

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Store values by key, all or none of them, in place of those that were there."""
        rows = [(key, _checksum(key + value) + value) for key, value in entries]
        query = "INSERT OR REPLACE INTO entries VALUES (?, ?)"
        self._run(lambda connection: connection.executemany(query, rows))

    def _run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a transaction, again if it finds that the file is damaged."""
        try:
            return self._run_once(work)
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
        try:
            return self._run_once(work)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _run_once(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        # A connection per transaction costs a millisecond, and leaves nothing open in a process
        # that forks or is interrupted.
        with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as connection, connection:
            connection.text_factory = bytes  # Text is damage, and may not be UTF-8.
            # Not to wait for the disk saves nine tenths of the time. The system keeps what a killed
            # process has written; what a power failure damages is found, and computed again.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
            )
            return work(connection)

    def _set_aside(self, error: sqlite3.Error) -> None:
        damaged = self.path.with_name(f"{self.path.name}.damaged")
        try:
            self.path.replace(damaged)
        except OSError as failed:
            raise self._unusable(failed) from None
        warnings.warn(
            f"{self.path} is damaged ({error}). It is renamed to {damaged.name}, and what it held "
            "is computed again.",
            stacklevel=5,
        )

    def _unusable(self, error: Exception) -> InputError:
        reason = getattr(error, "strerror", None) or str(error)
        return InputError(
            f"{self.path}: the cache cannot be used ({reason}). Choose another folder with cache= "
            "(--cache), or use none with cache=False (--no-cache)."
        )


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little")


def _is_whole(key: bytes, value: Any) -> bool:
    if not isinstance(value, bytes):
        return False
    return value[:_CHECKSUM_BYTES] == _checksum(key + value[_CHECKSUM_BYTES:])
