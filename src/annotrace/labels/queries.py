"""Queries: the rows that they select from a database, as columns of text or of Python values."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from annotrace.errors import InputError, first_few
from annotrace.labels.columns import check_distinct
from annotrace.labels.documents import Document
from annotrace.labels.files import GZIP, Piped, open_file, read_bytes, size_of
from annotrace.labels.sheets import Sheet
from annotrace.labels.vocabulary import encode_values
from annotrace.limits import Limits

Row: TypeAlias = Sequence[str | None]

BATCH = 10_000
_VALUE_SIZE = 64  # bytes in memory, without the text itself
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_READS = re.compile(r"[\s(]*(select|with|values)\b", re.IGNORECASE)
_WRITES = re.compile(r"\binto\b|\bdelete\s+from\b|\bupdate\b.*\bset\b", re.IGNORECASE | re.DOTALL)


class Database(Protocol):
    """A database that is open for reading."""

    def tables(self) -> list[str]:
        """Return the names of tables and views."""

    def select(self, query: str) -> tuple[list[str], Iterator[Sequence[Row]]]:
        """Return the columns of a query, and its rows in batches."""


Connect: TypeAlias = Callable[[Path, str, Limits], AbstractContextManager[Database]]


def database_document(path: Path, limits: Limits, connect: Connect) -> Document:
    """Return a database as a document, whose sheet is its only table or view, or a query."""

    def read(query: str | None) -> Sheet:
        source = str(path)
        with _as_file(path, limits) as file, connect(file, source, limits) as database:
            query = _select_all(database.tables(), source) if query is None else query
            columns, batches = database.select(query)
            return _read_rows(columns, batches, source, file.stat().st_size, limits)

    return Document(path, "row", make_sheet=lambda: read(None), run_query=read)


@contextmanager
def _as_file(path: Path, limits: Limits) -> Iterator[Path]:
    """Return a regular file with the content of a pipe or of a gzip file."""
    with open_file(path, limits) as file:
        size = size_of(file)
        limits.check_size(size, size, str(path))
        is_packed = file.read(len(GZIP)) == GZIP
    if not is_packed and not isinstance(path, Piped):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / "labels"
        unpacked.write_bytes(read_bytes(path, limits))
        yield unpacked


def _select_all(tables: list[str], source: str) -> str:
    """Return the query for the only table."""
    if not tables:
        raise InputError(f"{source} has no table.")
    quoted = tables[0].replace('"', '""')
    query = f'SELECT * FROM "{quoted}"'
    if len(tables) == 1:
        return query
    raise InputError(
        f"{source} has several tables ({first_few(tables, 10)}). Choose the labels with a query, "
        f"such as query={query!r} (--query {query!r} on the command line); other files, such as "
        "those of gold items, must have one table."
    )


def _read_rows(
    columns: list[str],
    batches: Iterator[Sequence[Row]],
    source: str,
    packed_size: int,
    limits: Limits,
) -> Sheet:
    """Read rows of text within the limits of size, and return them as a sheet."""
    rows, size = list[Row](), 0
    limits.check_columns(len(columns), source)
    check_distinct(columns, source)
    for batch in batches:
        size += sum(_VALUE_SIZE + len(value or "") for row in batch for value in row)
        limits.check_size(size, packed_size, source)
        rows.extend(batch)
    if not rows:
        raise InputError(f"{source} has no rows that the query selects.")
    place = {name: k for k, name in enumerate(columns)}
    return Sheet(
        source,
        columns,
        lambda name: encode_values([row[place[name]] for row in rows]),
        lambda row, name: f"{source}, row {row + 1} of the query, column {name!r}",
    )


def check_select(query: str, source: str) -> None:
    """Check that a query selects rows and writes none, as far as its words show."""
    words = _QUOTED.sub(" ", query)
    if not _READS.match(words) or _WRITES.search(words):
        raise InputError(
            f"{source}: expected a query that selects rows (SELECT ...), but got {query[:60]!r}."
        )


def select_columns(
    query: str, connection: Any, parameters: Sequence[Any] | Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """Return what a query selects, by column; see `LabelTable.from_sql`."""
    check_select(query, "the query")
    with closing(connection.cursor()) as cursor:
        cursor.execute(query, *([] if parameters is None else [parameters]))
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
    check_distinct(names, "the query")
    if not rows:
        raise InputError("the query selects no rows.")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
