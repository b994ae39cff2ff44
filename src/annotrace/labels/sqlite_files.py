"""SQLite files, read by the standard library.

A database may come from a stranger, and its views are programs. It is opened read-only, and only
reading is authorised: no other database, no extension, no pragma. Time and memory are limited.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

from annotrace.errors import InputError
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import SQLITE
from annotrace.labels.queries import BATCH, Row, check_select, database_document
from annotrace.limits import FREE_SIZE, Limits

_READING = frozenset(
    [
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    ]
)
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite^_%' "
    "ESCAPE '^' ORDER BY name"
)
# Steps of the virtual machine between two looks at the clock: some milliseconds.
_STEPS = 100_000
# Where the header of a file says that it has a write-ahead log.
_LOG_MODE, _HAS_LOG = slice(18, 20), b"\x02\x02"


def _open(path: Path, start: bytes, limits: Limits) -> Document | None:
    return database_document(path, limits, _connect) if start.startswith(SQLITE) else None


SQLITE_FILE = FileType((".sqlite", ".sqlite3"), _open)


@contextmanager
def _connect(path: Path, source: str, limits: Limits) -> Iterator[_Database]:
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' * _is_at_rest(path)}"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        yield _Database(connection, source, limits)


def _is_at_rest(path: Path) -> bool:
    """Whether a database with a write-ahead log is not in use, as there is no such log.

    Unless it is opened as immutable, SQLite would leave an empty log beside it.
    """
    with path.open("rb") as file:
        has_log = file.read(_LOG_MODE.stop)[_LOG_MODE] == _HAS_LOG
    return has_log and not path.with_name(f"{path.name}-wal").exists()


class _Database:
    """A SQLite database that is open for reading."""

    def __init__(self, connection: sqlite3.Connection, source: str, limits: Limits) -> None:
        self._connection, self._source, self._limits = connection, source, limits
        self._deadline = time.monotonic() + limits.max_seconds
        with self._as_error():
            connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = _decode
        if hasattr(connection, "setlimit"):  # since Python 3.11
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, FREE_SIZE)
        connection.set_authorizer(_authorise)
        connection.set_progress_handler(self._is_late, _STEPS)

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def tables(self) -> list[str]:
        """Return the names of tables and views."""
        _, batches = self.select(_TABLES)
        return [str(name) for batch in batches for (name,) in batch]

    def select(self, query: str) -> tuple[list[str], Iterator[Sequence[Row]]]:
        """Return the columns of a query, and its rows in batches."""
        check_select(query, self._source)
        with self._as_error():
            cursor = self._connection.execute(query)
        columns = [column[0] for column in cursor.description]
        return columns, self._fetch(cursor, columns)

    def _fetch(self, cursor: sqlite3.Cursor, columns: list[str]) -> Iterator[Sequence[Row]]:
        n_rows = 0
        while True:
            with self._as_error():
                batch = cursor.fetchmany(BATCH)
            if not batch:
                return
            rows = [[_as_text(value) for value in row] for row in batch]
            if not all(map(_is_utf8, ("".join(filter(None, row)) for row in rows))):
                self._raise_text(rows, columns, n_rows)
            n_rows += len(rows)
            yield rows

    def _raise_text(self, rows: Sequence[Row], columns: list[str], n_before: int) -> NoReturn:
        """Raise the error that names the first text that is not UTF-8."""
        number, name, text = next(
            (number, name, text)
            for number, row in enumerate(rows, start=n_before + 1)
            for name, text in zip(columns, row, strict=True)
            if text is not None and not _is_utf8(text)
        )
        raise InputError(
            f"{self._source}, row {number} of the query, column {name!r}: {ascii(text)[:60]} is "
            "not UTF-8. Store text as UTF-8."
        )

    @contextmanager
    def _as_error(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if self._is_late():
                self._limits.raise_seconds(self._source)
            reason = " ".join(str(error).split()).rstrip(".")
            raise InputError(
                f"{self._source}: SQLite cannot read this ({reason}). A query may only read tables "
                "of the file; if the file is damaged, copy or export it again."
            ) from None


def _authorise(action: int, name: str | None, function: str | None, *_: str | None) -> int:
    """Permit reading."""
    is_loading = action == sqlite3.SQLITE_FUNCTION and function == "load_extension"
    is_reading = action in _READING and not is_loading
    return sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY


def _decode(content: bytes) -> str:
    """Decode text, and keep bytes that are not UTF-8 for the message that names their place."""
    return content.decode(errors="surrogateescape")


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _as_text(value: Any) -> str | None:
    """Return a value as text as it is stored; bytes that are not text in hexadecimal."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return str(value)
