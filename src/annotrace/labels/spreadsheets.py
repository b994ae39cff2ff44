"""Spreadsheets: csv, tsv and xlsx files with a header, every cell as text."""

from __future__ import annotations

import csv
import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.archives import open_archive
from annotrace.labels.columns import check_distinct
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import ZIP, damage_as_error, decode_text, read_bytes, size_of
from annotrace.labels.formulas import unguard_names, unguard_texts
from annotrace.labels.sheets import Sheet
from annotrace.labels.vocabulary import encode_series
from annotrace.limits import LABEL_LIMITS, Limits

Row: TypeAlias = tuple[int, list[str]]

# The attribute that names a cell of a sheet, as in r="C12", or a row.
_CELL_NAME = re.compile(rb"""[\s"']r\s*=\s*["']([A-Za-z]{0,7})(\d{1,10})["']""")
_CELL_SIZE = 32  # bytes in memory, without text


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

    def records(self) -> Iterator[tuple[int, dict[str, str | None]]]:
        """Iterate over the rows as records, with their numbers."""
        return zip(self.row_numbers.tolist(), self.frame.iter_rows(named=True), strict=True)


def _open_delimited(path: Path, start: bytes, limits: Limits) -> Document:
    source = str(path)

    def read() -> TextTable:
        return read_delimited(read_bytes(path, limits), source, limits)

    return Document(
        path,
        "row",
        records=lambda: read().records(),
        make_sheet=lambda: read().sheet(source),
        columns=_header(start),
    )


def _header(start: bytes) -> list[str]:
    """Return the names of columns from the first bytes of a file, which may cut the last one."""
    line = next(iter(start.decode(errors="replace").splitlines()), "")
    separator, _ = _likely_separator(line)
    try:
        return unguard_names(next(csv.reader([line], delimiter=separator), []))
    except csv.Error:
        return []


def _open_xlsx(path: Path, start: bytes, limits: Limits) -> Document | None:
    if not start.startswith(ZIP):
        return None
    content, source = io.BytesIO(read_bytes(path, limits)), str(path)
    with open_archive(content, source, limits) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            return None
    return Document(
        path, "row", make_sheet=lambda: _read_xlsx(content, source, limits).sheet(source)
    )


DELIMITED = FileType((".csv", ".tsv"), _open_delimited)
XLSX = FileType((".xlsx",), _open_xlsx)


def read_delimited(content: bytes, source: str, limits: Limits = LABEL_LIMITS) -> TextTable:
    """Read text with a header, separated by commas, tabs or semicolons.

    `source` names the file in messages. An empty cell is null or "".
    """
    text = decode_text(content, source)
    separator = _find_separator(text, source, limits)
    records = _records(text, separator, source, limits)
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


def _find_separator(text: str, source: str, limits: Limits) -> str:
    line = re.search(r"[^\r\n]+", text)
    separator, n_columns = _likely_separator(line[0] if line else "")
    limits.check_columns(n_columns, source)
    return separator


def _likely_separator(header: str) -> tuple[str, int]:
    """Return the separator of a header that occurs most, and the number of columns."""
    unquoted = re.sub('"[^"]*"', "", header)
    separator = max(",\t;", key=unquoted.count)
    return separator, unquoted.count(separator) + 1


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


def _records(text: str, separator: str, source: str, limits: Limits) -> Iterator[Row]:
    """Iterate over the records that are not blank, with their numbers from 1."""
    # The limit of the csv module holds for the whole process, and is raised on demand only.
    if limits.max_cell > csv.field_size_limit():
        csv.field_size_limit(limits.max_cell)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for number in count(1):
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field limit" in str(error):
                limits.check_cell(csv.field_size_limit() + 1, f"{source}, row {number}")
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


def _read_xlsx(content: io.BytesIO, source: str, limits: Limits) -> TextTable:
    """Read the first sheet."""
    rows = _xlsx_rows(_repack(content, source, limits), source)
    numbered = [(number, row) for number, row in enumerate(rows, start=1) if any(row)]
    if not numbered:
        raise InputError(f"{source}: the first sheet is empty.")
    (_, header), *numbered = numbered
    while not header[-1] and not any(row[len(header) - 1] for _, row in numbered):
        header = header[:-1]
    header = unguard_names(header)
    check_distinct(header, source)
    return _table_from_rows(header, numbered, source)


def _repack(content: io.BytesIO, source: str, limits: Limits) -> io.BytesIO:
    """Unpack a workbook within limits, and return it as an archive that need not be unpacked.

    The reader of workbooks would trust the sizes in the archive, and allocate every cell up to the
    last row and column that a cell names.
    """
    repacked, n_rows, n_columns = io.BytesIO(), 1, 1
    with open_archive(content, source, limits) as archive, zipfile.ZipFile(repacked, "w") as stored:
        for name in dict.fromkeys(archive.namelist()):
            member = archive.read(name)
            for cell in _CELL_NAME.finditer(member):
                n_columns = max(n_columns, _column_number(cell[1]))
                n_rows = max(n_rows, int(cell[2]))
            stored.writestr(zipfile.ZipInfo(name), member)
    limits.check_columns(n_columns, source)
    limits.check_size(n_rows * n_columns * _CELL_SIZE, size_of(repacked), source)
    return repacked


@lru_cache
def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _xlsx_rows(content: io.BytesIO, source: str) -> list[list[str]]:
    """Return the rows of the first sheet, counted from row 1, all of the same length."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise InputError(
            f"{source} is an Excel workbook, and reading it needs python-calamine: "
            "pip install 'annotrace[xlsx]', or save the sheet as csv."
        ) from None
    with damage_as_error(source, "xlsx", CalamineError, IndexError):
        sheet = CalamineWorkbook.from_filelike(content).get_sheet_by_index(0)
        rows = sheet.to_python(skip_empty_area=False)
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
