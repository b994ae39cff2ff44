"""Large csv and JSON lines files read in blocks, so that their text is never in memory as a whole.

A file that polars cannot read with certainty as the csv module or Python's JSON would, such as one
with rows of different lengths, is read as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from annotrace.labels.files import BOM
from annotrace.labels.sheets import Sheet
from annotrace.labels.text_coding import encode_texts
from annotrace.labels.vocabulary import Coded
from annotrace.progress import StageParts

BLOCK_BYTES = 2**26
"""Bytes of a file that are in memory at a time; text in polars takes about three times as many."""

Blocks = Callable[[], Iterator[bytes]]


def record_blocks(path: Path, *, quoted: bool) -> Iterator[bytes]:
    """Iterate over the blocks of a file, each of whole records, without byte order mark.

    Parameters
    ----------
    path : Path
    quoted : bool
        Whether line feeds inside double quotes belong to a record, as in csv.

    Raises
    ------
    ValueError
        If a record is longer than a block, or is no text.
    """
    with path.open("rb") as file:
        file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)
        while block := file.read(BLOCK_BYTES):
            is_last = len(block) < BLOCK_BYTES
            stop = len(block) if is_last else _end_of_records(block, quoted)
            if stop == 0 or b"\0" in block:
                raise ValueError("a record is longer than a block, or is no text")
            file.seek(stop - len(block), os.SEEK_CUR)
            if not block.isspace():
                yield block[:stop]


def _end_of_records(block: bytes, quoted: bool) -> int:
    """Return where the last whole record ends: at a line feed outside of quotes."""
    stop, n_quotes = len(block), block.count(b'"') if quoted else 0
    while (line_feed := block.rfind(b"\n", 0, stop)) >= 0:
        n_quotes -= block.count(b'"', line_feed, stop) if quoted else 0
        if n_quotes % 2 == 0:
            return line_feed + 1
        stop = line_feed
    return 0


def sheet_of_blocks(
    source: str,
    columns: list[str],
    read: Callable[[str], Iterator[Any]],
    name_cell: Callable[[int, Any], str],
) -> Sheet:
    """Return a sheet whose columns are read in blocks.

    Parameters
    ----------
    source : str
    columns : list of str
    read : callable
        Returns an iterator of the parts of a column by its name, polars series of text.
    name_cell : callable
        As in `Sheet`.
    """
    n_blocks = -(-Path(source).stat().st_size // BLOCK_BYTES)
    # Three columns are read: items, annotators and labels.
    progress = StageParts("Reading labels, block of a column", 3 * n_blocks)

    def column(name: str) -> Coded:
        return encode_texts(progress.of(read(name)))

    return Sheet(source, columns, column, name_cell, read)


def json_lines_sheet(path: Path) -> Sheet | None:
    """Return a file of JSON lines as a sheet, if all values are text or whole numbers, else None.

    Parameters
    ----------
    path : Path
        A file that is not packed.
    """
    try:
        fields = _common_fields(path)
    except ValueError:
        return None
    if fields is None:
        return None

    def read(name: str) -> Iterator[Any]:
        import polars as pl

        blocks = record_blocks(path, quoted=False)
        return (_json_frame(block)[name].cast(pl.String) for block in blocks)

    def cell(row: int, name: Any) -> str:
        return f"{path}, line {_line_of(path, row)}: field {name!r}"

    return sheet_of_blocks(str(path), fields, read, cell)


def _json_frame(block: bytes) -> Any:
    import polars as pl

    return pl.read_ndjson(block, infer_schema_length=None)


def _common_fields(path: Path) -> list[str] | None:
    """Return the fields that all blocks of JSON lines have, None if there are others or no text."""
    import polars as pl

    known: list[str] | None = None
    try:
        for block in record_blocks(path, quoted=False):
            schema = _json_frame(block).schema
            plain = all(kind == pl.String or kind == pl.Int64 for kind in schema.values())
            if not plain or (known is not None and set(schema) != set(known)):
                return None
            known = known or list(schema)
    except pl.exceptions.PolarsError:
        return None
    return known


def _line_of(path: Path, row: int) -> int:
    """Return the number of the line that has a row, counted from 0 without blank lines."""
    with path.open("rb") as file:
        filled = (number for number, line in enumerate(file, start=1) if line.strip())
        return next(number for place, number in enumerate(filled) if place == row)
