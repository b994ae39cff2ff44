"""Label files: the format is told by content, every name is text."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.archives import table_from_arrays
from annotrace.labels.codes import Choices
from annotrace.labels.coding import encode_series, encode_values
from annotrace.labels.columns import Layout, Named, find_layout
from annotrace.labels.delimited import read_delimited
from annotrace.labels.files import NPY, PARQUET, ZIP, decode_text, load_arrays, read_bytes
from annotrace.labels.frames import Sheet, table_from_sheet
from annotrace.labels.table import LabelTable


def read_table(path: str | Path, named: Named, choices: Choices) -> LabelTable:
    """Read a table from a file; see `LabelTable.read`."""
    return read_with_layout(path, named, choices)[0]


def read_with_layout(
    path: str | Path, named: Named, choices: Choices
) -> tuple[LabelTable, Layout | None]:
    """Read a table from a file, and tell which columns were used (None for npy and npz)."""
    content, source = read_bytes(path), str(path)
    if choices.classes is not None:
        choices = replace(choices, classes=[str(name) for name in choices.classes])
    if content.startswith((NPY, ZIP)):
        arrays = load_arrays(io.BytesIO(content), source)
        return table_from_arrays(arrays, named, choices, source), None
    sheet = _read_sheet(content, source)
    layout = find_layout(sheet.columns, named, source)
    return table_from_sheet(sheet, layout, choices), layout


def _read_sheet(content: bytes, source: str) -> Sheet:
    if content.startswith(PARQUET):
        return _sheet_of_parquet(content, source)
    start = content[:1000].removeprefix("\ufeff".encode()).lstrip()
    if start.startswith(b"{"):
        return _sheet_of_json_lines(content, source)
    if start.startswith(b"[{"):
        raise InputError(
            f"{source} is one JSON array. Write one object a line instead (jq -c '.[]' does it)."
        )
    import narwhals as nw

    table = read_delimited(content, source)
    frame = nw.from_native(table.frame, eager_only=True)
    return Sheet(
        source,
        frame.columns,
        lambda name: encode_series(frame[name]),
        table.row_numbers,
        "row {row}, column {column!r}",
    )


def _sheet_of_parquet(content: bytes, source: str) -> Sheet:
    import narwhals as nw
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{source} is a damaged parquet file ({_first_line(error)}).") from None
    if len(frame) == 0:
        raise InputError(f"{source} has no rows.")
    known = nw.from_native(frame, eager_only=True)
    return Sheet(
        source, frame.columns, lambda name: encode_series(known.get_column(name)).as_text()
    )


def _sheet_of_json_lines(content: bytes, source: str) -> Sheet:
    lines = [
        (number, line)
        for number, line in enumerate(decode_text(content, source).split("\n"), start=1)
        if line.strip()
    ]
    records = [_parse_line(line, source, number) for number, line in lines]
    fields = list(dict.fromkeys(field for record in records for field in record))
    return Sheet(
        source,
        fields,
        lambda name: encode_values([_as_written(record.get(name)) for record in records]),
        [number for number, _ in lines],
        "line {row}: field {column!r}",
    )


def _parse_line(line: str, source: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{source}, line {number}: not JSON ({error.msg} at character {error.pos + 1}). "
            "Write one object a line."
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"{source}, line {number}: not a JSON object. Write one object a line.")
    return record


def _as_written(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | dict) else value


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
