"""Spreadsheets: xlsx files with a header, every cell as text."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.archives import open_archive
from annotrace.labels.columns import check_distinct
from annotrace.labels.delimited import TextTable, table_from_rows
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import (
    ZIP,
    damage_as_error,
    read_bytes,
    size_of,
)
from annotrace.labels.formulas import unguard_names
from annotrace.limits import Limits

# The attribute that names a cell of a sheet, as in r="C12", or a row.
_CELL_NAME = re.compile(rb"""[\s"']r\s*=\s*["']([A-Za-z]{0,7})(\d{1,10})["']""")
_CELL_SIZE = 32  # bytes in memory, without text


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


XLSX = FileType((".xlsx",), _open_xlsx)


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
    return table_from_rows(header, numbered, source)


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
