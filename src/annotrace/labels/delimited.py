"""Delimited text (csv, tsv): every cell as text, fast if it is regular, row by row if not."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.columns import check_distinct
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import decode_text, read_bytes
from annotrace.labels.sheets import Sheet
from annotrace.labels.vocabulary import encode_series


class TextTable(NamedTuple):
    """A polars frame of text, and the number of each row as in a spreadsheet."""

    frame: Any
    row_numbers: NDArray[np.int64]


def _open(path: Path, start: bytes) -> Document:
    return Document(path, "row", make_sheet=lambda: _read_sheet(path))


DELIMITED = FileType((".csv", ".tsv"), _open)


def _read_sheet(path: Path) -> Sheet:
    frame, row_numbers = read_delimited(read_bytes(path), str(path))
    return Sheet(
        str(path),
        frame.columns,
        lambda name: encode_series(_narwhals(frame[name])),
        row_numbers,
        "row {row}, column {column!r}",
    )


def _narwhals(series: Any) -> Any:
    import narwhals as nw

    return nw.from_native(series, series_only=True)


def read_delimited(content: bytes, source: str) -> TextTable:
    """Read text with a header, separated by commas, tabs or semicolons.

    Parameters
    ----------
    content : bytes
        The file, unpacked.
    source : str
        The file, for messages.

    Returns
    -------
    TextTable
        Columns of text; an empty cell is null or "".
    """
    text = decode_text(content, source)
    content = content.removeprefix("\ufeff".encode()).rstrip(b"\r\n")
    separator = _find_separator(text)
    _, header = next(_records(text, separator, source), (0, []))
    if not header:
        raise InputError(f"{source} is empty.")
    check_distinct(header, source)
    frame = _read_fast(content, header, separator)
    if frame is None:
        return _read_by_row(text, header, separator, source)
    if len(frame) == 0:
        raise InputError(_header_only(source))
    return TextTable(frame, np.arange(2, len(frame) + 2))


def _find_separator(text: str) -> str:
    line = re.search(r"[^\r\n]+", text)
    return max(",\t;", key=re.sub('"[^"]*"', "", line[0] if line else "").count)


def _read_fast(content: bytes, header: list[str], separator: str) -> Any:
    """Read with polars; return None if a row may have too few or too many fields.

    Polars refuses long rows but pads short ones, so that a shifted row would pass. No row is short
    if the last column has no null, or if the file has the expected number of separators.
    """
    import polars as pl

    try:
        frame = pl.read_csv(content, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.width != len(header) or b"\n" not in content:
        return None
    frame.columns = header
    if frame.to_series(-1).null_count():
        expected = (len(header) - 1) * (len(frame) + 1)
        if b'"' in content or content.count(separator.encode()) != expected:
            return None
    return frame


def _read_by_row(text: str, header: list[str], separator: str, source: str) -> TextTable:
    """Read with Python's csv module, which reports the row of an error; skip blank lines."""
    import polars as pl

    numbers, cells = [], []
    for number, record in islice(_records(text, separator, source), 1, None):
        if len(record) != len(header):
            raise InputError(
                f"{source}, row {number}: expected {len(header)} fields as in the header, but got "
                f"{len(record)} ({separator.join(record)[:60]!r}). Add or remove a field, or quote "
                f"a field that contains {separator!r}."
            )
        numbers.append(number)
        cells.append(record)
    if not cells:
        raise InputError(_header_only(source))
    columns = zip(header, zip(*cells, strict=True), strict=True)
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns})
    return TextTable(frame, np.array(numbers))


def _records(text: str, separator: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the records that are not blank, with their numbers from 1."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    while True:
        number += 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"{source}, row {number}: {error}. Look for a quote that is not closed or "
                "inside a field; inside quotes, write a quote twice."
            ) from None
        if record:
            yield number, record


def _header_only(source: str) -> str:
    return f"{source} has a header and no rows below it."
