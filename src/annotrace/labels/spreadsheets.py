"""Spreadsheets: csv, tsv and xlsx files with a header, every cell as text."""

from __future__ import annotations

import csv
import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.columns import check_distinct
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import ZIP, decode_text, read_bytes
from annotrace.labels.formulas import unguard_names, unguard_texts
from annotrace.labels.sheets import Sheet
from annotrace.labels.vocabulary import encode_series

Row: TypeAlias = tuple[int, list[str]]


class TextTable(NamedTuple):
    """A polars frame of text, and the number of each row as in a spreadsheet."""

    frame: Any
    row_numbers: NDArray[np.int64]

    def sheet(self, source: str) -> Sheet:
        """Return the table as a sheet of a file."""
        return Sheet(
            source,
            self.frame.columns,
            lambda name: encode_series(self.frame[name]),
            lambda row, name: f"{source}, row {self.row_numbers[row]}, column {name!r}",
        )


def _open_delimited(path: Path, start: bytes) -> Document:
    source = str(path)
    return Document(
        path, "row", make_sheet=lambda: read_delimited(read_bytes(path), source).sheet(source)
    )


def _open_xlsx(path: Path, start: bytes) -> Document | None:
    if not start.startswith(ZIP):
        return None
    content, source = read_bytes(path), str(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if "xl/workbook.xml" not in archive.namelist():
                return None
    except zipfile.BadZipFile:
        return None
    return Document(path, "row", make_sheet=lambda: _read_xlsx(content, source).sheet(source))


DELIMITED = FileType((".csv", ".tsv"), _open_delimited)
XLSX = FileType((".xlsx",), _open_xlsx)


def read_delimited(content: bytes, source: str) -> TextTable:
    """Read text with a header, separated by commas, tabs or semicolons.

    `source` names the file in messages. An empty cell is null or "".
    """
    text = decode_text(content, source)
    separator = _find_separator(text)
    records = _records(text, separator, source)
    _, header = next(records, (0, []))
    if not header:
        raise InputError(f"{source} is empty.")
    header = unguard_names(header)
    check_distinct(header, source)
    content = content.removeprefix("\ufeff".encode()).rstrip(b"\r\n")
    frame = _read_fast(content, header, separator)
    if frame is not None:
        return TextTable(unguard_texts(frame), np.arange(2, len(frame) + 2))
    rows = list(records)
    for number, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{source}, row {number}: expected {len(header)} fields as in the header, but got "
                f"{len(row)} ({separator.join(row)[:60]!r}). Add or remove a field, or quote a "
                f"field that contains {separator!r}."
            )
    return _table_from_rows(header, rows, source)


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
    if frame.width != len(header) or len(frame) == 0:
        return None
    frame.columns = header
    if frame.to_series(-1).null_count():
        expected = (len(header) - 1) * (len(frame) + 1)
        if b'"' in content or content.count(separator.encode()) != expected:
            return None
    return frame


def _records(text: str, separator: str, source: str) -> Iterator[Row]:
    """Iterate over the records that are not blank, with their numbers from 1."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for number in count(1):
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


def _table_from_rows(header: list[str], rows: list[Row], source: str) -> TextTable:
    import polars as pl

    if not rows:
        raise InputError(f"{source} has a header and no rows below it.")
    numbers, cells = zip(*rows, strict=True)
    columns = zip(header, zip(*cells, strict=True), strict=False)
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns})
    return TextTable(unguard_texts(frame), np.array(numbers))


def _read_xlsx(content: bytes, source: str) -> TextTable:
    """Read the first sheet."""
    numbered = enumerate(_xlsx_rows(content, source), start=1)
    rows = [(number, row) for number, row in numbered if any(row)]
    if not rows:
        raise InputError(f"{source}: the first sheet is empty.")
    (_, header), *rows = rows
    while not header[-1] and not any(row[len(header) - 1] for _, row in rows):
        header = header[:-1]
    header = unguard_names(header)
    check_distinct(header, source)
    return _table_from_rows(header, rows, source)


def _xlsx_rows(content: bytes, source: str) -> list[list[str]]:
    """Return the rows of the first sheet, counted from row 1, all of the same length."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise InputError(
            f"{source} is an Excel workbook, and reading it needs python-calamine: "
            "pip install 'annotrace[xlsx]', or save the sheet as csv."
        ) from None
    try:
        sheet = CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_index(0)
        rows = sheet.to_python(skip_empty_area=False)
    except (CalamineError, IndexError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"{source} is a damaged xlsx file ({reason}).") from None
    return [[_excel_text(value) for value in row] for row in rows]


def _excel_text(value: Any) -> str:
    """Write a cell as Excel's csv export would, but dates in ISO format."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
