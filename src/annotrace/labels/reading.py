"""Label files: the format is told by content, every name is text."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.archives import table_from_arrays
from annotrace.labels.building import build_table
from annotrace.labels.codes import Choices
from annotrace.labels.coding import encode_series, encode_values
from annotrace.labels.columns import Layout, Named, find_layout
from annotrace.labels.delimited import read_delimited
from annotrace.labels.files import NPY, ZIP, check_file, load_arrays, read_bytes
from annotrace.labels.formats.base import objects
from annotrace.labels.formats.documents import Document, open_document, rows_by_index
from annotrace.labels.frames import Sheet, table_from_sheet
from annotrace.labels.importing import Imported, Request, find_format, import_answers
from annotrace.labels.stacking import stack_sheets
from annotrace.labels.table import LabelTable

Paths = str | Path | Sequence[str | Path]

_SUFFIXES = (
    *(".csv", ".tsv", ".json", ".jsonl", ".ndjson"),
    *(".manifest", ".xml", ".parquet", ".arrow"),
)
# What tools put beside the labels, and what tells nothing of them.
_BESIDE = frozenset(["dataset_info.json", "dataset_infos.json", "state.json", "metadata.json"])


def read_table(
    paths: Paths, named: Named, choices: Choices, request: Request
) -> tuple[LabelTable, Layout | Imported | None]:
    """Read a table from files, and tell what was used of them; see `LabelTable.read`.

    Returns
    -------
    table : LabelTable
    used : Layout, Imported or None
        The columns of a table, what was read of an export, None for npy and npz.
    """
    files = list_files(paths)
    if choices.classes is not None:
        choices = replace(choices, classes=[str(name) for name in choices.classes])
    documents = [open_document(file) for file in files]
    format = find_format(files, documents, request.format)
    if format is None:
        return _read_tables(files, documents, named, choices)
    _check_no_columns(named, format.title, files[0])
    columns, imported = import_answers(
        _all_known(files, documents, format.title), format, request, named.item
    )
    return build_table(columns, choices, str(files[0])), imported


def list_files(paths: Paths) -> list[Path]:
    """Give the files that some paths name; a folder stands for the label files at any depth."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    inside = [_inside(Path(path)) if Path(path).is_dir() else [path] for path in listed]
    files = [check_file(file) for some in inside for file in some]
    if not files:
        raise InputError("Expected at least one file, but got none.")
    return files


def _inside(folder: Path) -> list[Path]:
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.lower().removesuffix(".gz").endswith(_SUFFIXES)
        and path.name not in _BESIDE
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
    if not found:
        raise InputError(
            f"{folder} is a folder without label files: none ends in {', '.join(_SUFFIXES)} "
            "(with .gz or without)."
        )
    return found


def _all_known(
    files: list[Path], documents: Sequence[Document | None], title: str
) -> list[Document]:
    for file, document in zip(files, documents, strict=True):
        if document is None:
            raise InputError(f"{file} is neither JSON nor XML, so it is no {title}.")
    return [document for document in documents if document is not None]


def _check_no_columns(named: Named, title: str, path: Path) -> None:
    for role in ("annotator", "label", "truth"):
        if getattr(named, role) is not None:
            raise InputError(
                f"{path} is {title}, where {role}= (--{role}) has no column to name. Leave it out; "
                "question= and annotator_name= say what such a file does not. If it is a table, "
                "say so with format='table' (--from table)."
            )


def _read_tables(
    files: list[Path], documents: Sequence[Document | None], named: Named, choices: Choices
) -> tuple[LabelTable, Layout | None]:
    sheets = []
    for file, document in zip(files, documents, strict=True):
        content = b"" if document else read_bytes(file)
        if content.startswith((NPY, ZIP)):
            if len(files) > 1:
                raise InputError(f"{file} holds arrays: read it by itself.")
            arrays = load_arrays(io.BytesIO(content), str(file))
            return table_from_arrays(arrays, named, choices, str(file)), None
        sheets.append(_sheet_of_document(document) if document else _sheet_of_text(content, file))
    sheet = sheets[0] if len(sheets) == 1 else stack_sheets(sheets)
    layout = find_layout(sheet.columns, named, sheet.source)
    return table_from_sheet(sheet, layout, choices), layout


def _sheet_of_text(content: bytes, path: Path) -> Sheet:
    import narwhals as nw

    table = read_delimited(content, str(path))
    frame = nw.from_native(table.frame, eager_only=True)
    return Sheet(
        str(path),
        frame.columns,
        lambda name: encode_series(frame[name]),
        table.row_numbers,
        "row {row}, column {column!r}",
    )


def _sheet_of_document(document: Document) -> Sheet:
    if document.frame is not None:
        return _sheet_of_frame(document)
    if document.unit == "element":
        raise InputError(f"{document.path} is XML that this library does not know.")
    numbers, records = [], []
    for number, record in objects(document):
        numbers.append(number)
        records.append(record)
    if len(records) == 1 and (rows := rows_by_index(records[0])):
        return _sheet_of_records(document.path, "index", list(rows), list(rows.values()))
    return _sheet_of_records(document.path, document.unit, numbers, records)


def _sheet_of_records(
    path: Path, unit: str, numbers: Sequence[Any], records: Sequence[dict[str, Any]]
) -> Sheet:
    fields = list(dict.fromkeys(field for record in records for field in record))
    return Sheet(
        str(path),
        fields,
        lambda name: encode_values([_as_written(record.get(name)) for record in records]),
        numbers,
        f"{unit} {{row}}: field {{column!r}}",
    )


def _sheet_of_frame(document: Document) -> Sheet:
    import narwhals as nw

    known = nw.from_native(document.frame, eager_only=True)
    return Sheet(
        str(document.path),
        known.columns,
        lambda name: encode_series(known.get_column(name)).as_text(),
    )


def _as_written(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | dict) else value
