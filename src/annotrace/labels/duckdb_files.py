"""DuckDB files, read by the optional package duckdb.

A database may come from a stranger, and its views are programs. It is opened read-only, without
access to other files, the network, extensions or variables of the program. Time and memory are
limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import is_duckdb
from annotrace.labels.queries import BATCH, Row, check_select, database_document
from annotrace.limits import Limits

_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}
# A view takes a query as it is, with semicolons and comments at its end.
_VIEW = '"the query"'
_TABLES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() "
    "ORDER BY table_name"
)


def _open(path: Path, start: bytes, limits: Limits) -> Document | None:
    return database_document(path, limits, _connect) if is_duckdb(start) else None


DUCKDB_FILE = FileType((".duckdb",), _open)


@contextmanager
def _connect(path: Path, source: str, limits: Limits) -> Iterator[_Database]:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"{source} is a DuckDB database, and reading it needs duckdb: "
            "pip install 'annotrace[duckdb]', or export the labels as csv or parquet."
        ) from None
    config: Any = {**_CONFIG, "memory_limit": f"{limits.max_size}B"}
    try:
        with duckdb.connect(str(path), read_only=True, config=config) as connection:
            timer = Timer(limits.max_seconds, connection.interrupt)
            timer.start()
            try:
                yield _Database(connection, source)
            finally:
                timer.cancel()
    except duckdb.InterruptException:
        limits.raise_seconds(source)
    except duckdb.Error as error:
        reason = str(error).strip().split("\n", 1)[0].rstrip(".")
        raise InputError(
            f"{source}: DuckDB cannot read this ({reason}). A query may only read tables of the "
            "file; if the file is damaged, copy or export it again."
        ) from None


class _Database:
    """A DuckDB database that is open for reading."""

    def __init__(self, connection: Any, source: str) -> None:
        self._connection, self._source = connection, source

    def tables(self) -> list[str]:
        """Return the names of tables and views."""
        return [name for (name,) in self._connection.execute(_TABLES).fetchall()]

    def select(self, query: str) -> tuple[list[str], Iterator[Sequence[Row]]]:
        """Return the columns of a query, and its rows in batches."""
        check_select(query, self._source)
        statements = self._connection.extract_statements(query)
        if len(statements) != 1:
            raise InputError(f"{self._source}: expected one query, but got {len(statements)}.")
        self._connection.execute(f"CREATE TEMPORARY VIEW {_VIEW} AS {query}")
        cursor = self._connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM temp.{_VIEW}")
        columns = [column[0] for column in cursor.description]
        return columns, iter(lambda: cursor.fetchmany(BATCH), [])
