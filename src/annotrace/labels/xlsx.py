"""Excel workbooks (.xlsx): the first sheet, every cell as text."""

from __future__ import annotations

import datetime
import io
import zipfile
from pathlib import Path
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.columns import check_distinct
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import ZIP, read_bytes
from annotrace.labels.sheets import Sheet
from annotrace.labels.vocabulary import encode_values


def _open(path: Path, start: bytes) -> Document | None:
    if not start.startswith(ZIP):
        return None
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if "xl/workbook.xml" not in archive.namelist():
                return None
    except zipfile.BadZipFile:
        return None
    return Document(path, "row", make_sheet=lambda: _read_sheet(content, str(path)))


XLSX = FileType((".xlsx",), _open)


def _read_sheet(content: bytes, source: str) -> Sheet:
    numbered = [
        (number, row) for number, row in enumerate(_read_rows(content, source), start=1) if any(row)
    ]
    if not numbered:
        raise InputError(f"{source}: the first sheet is empty.")
    (_, header), *body = numbered
    if not body:
        raise InputError(f"{source} has a header and no rows below it.")
    while not header[-1] and not any(row[len(header) - 1] for _, row in body):
        header = header[:-1]
    check_distinct(header, source)
    position = {name: place for place, name in enumerate(header)}
    return Sheet(
        source,
        header,
        lambda name: encode_values([row[position[name]] for _, row in body]),
        [number for number, _ in body],
        "row {row}, column {column!r}",
    )


def _read_rows(content: bytes, source: str) -> list[list[str]]:
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
    return [[_as_text(value) for value in row] for row in rows]


def _as_text(value: Any) -> str:
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
