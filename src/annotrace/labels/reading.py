"""Label files: which files to read, their types and formats, and the table in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from annotrace.errors import InputError
from annotrace.labels.arrays import NPY_OR_NPZ, table_from_arrays
from annotrace.labels.building import TableOptions, build_table
from annotrace.labels.columns import ColumnNames, Layout, find_layout
from annotrace.labels.delimited import DELIMITED
from annotrace.labels.documents import JSON, XML, Document
from annotrace.labels.files import check_file, open_unpacked
from annotrace.labels.importing import ExportOptions, Imported, find_format, import_answers
from annotrace.labels.parquet import PARQUET_OR_ARROW
from annotrace.labels.sheets import stack_sheets, table_from_sheet
from annotrace.labels.table import LabelTable
from annotrace.labels.xlsx import XLSX

Paths: TypeAlias = str | Path | Sequence[str | Path]

# Tried in this order: an xlsx file is a zip archive like npz, and any text may be delimited.
FILE_TYPES = (PARQUET_OR_ARROW, XLSX, NPY_OR_NPZ, JSON, XML, DELIMITED)

_SUFFIXES = tuple(suffix for kind in reversed(FILE_TYPES) for suffix in kind.suffixes)
_NOT_LABELS = frozenset(["dataset_info.json", "dataset_infos.json", "state.json", "metadata.json"])
_START = 4096


def read_table(
    paths: Paths, names: ColumnNames, options: TableOptions, export: ExportOptions
) -> tuple[LabelTable, Layout | Imported | None]:
    """Read a table from files; see `LabelTable.read`.

    Returns
    -------
    table : LabelTable
    used : Layout, Imported or None
        The columns of a table, a summary of the export of a tool, or None for npy and npz.
    """
    documents = [open_document(file) for file in list_files(paths)]
    if options.classes is not None:
        options = replace(options, classes=[str(name) for name in options.classes])
    format = find_format(documents, export.format)
    used: Layout | Imported | None
    if format is None:
        table, used = _read_sheets(documents, names, options)
    else:
        _check_no_columns(names, format.title, documents[0].path)
        columns, used = import_answers(documents, format, export, names.item)
        table = build_table(columns, options, str(documents[0].path))
    source = str(documents[0].path) if len(documents) == 1 else "the label files"
    return table.replace(source=source), used


def list_files(paths: Paths) -> list[Path]:
    """Return the files that paths name; a folder stands for all label files below it."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    nested = [_files_below(Path(path)) if Path(path).is_dir() else [path] for path in listed]
    files = [check_file(file) for some in nested for file in some]
    if not files:
        raise InputError("Expected at least one file, but got none.")
    return files


def open_document(path: str | Path) -> Document:
    """Open a label file as the first file type that recognises its content."""
    path = check_file(path)
    with open_unpacked(path) as file:
        start = file.read(_START).removeprefix("\ufeff".encode()).lstrip()
    opened = (kind.open(path, start) for kind in FILE_TYPES)
    return next(document for document in opened if document is not None)


def _files_below(folder: Path) -> list[Path]:
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.name.lower().removesuffix(".gz").endswith(_SUFFIXES)
        and path.name not in _NOT_LABELS
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
    if not found:
        raise InputError(
            f"{folder} is a folder without label files ({', '.join(_SUFFIXES)}, optionally .gz)."
        )
    return found


def _check_no_columns(names: ColumnNames, title: str, path: Path) -> None:
    for role in ("annotator", "label", "truth"):
        if getattr(names, role) is not None:
            raise InputError(
                f"{path} is {title}, which has no column for {role}= (--{role}). Remove it; such "
                "files are read with question= and annotator_name=. If the file is a table, pass "
                "format='table' (--from table)."
            )


def _read_sheets(
    documents: Sequence[Document], names: ColumnNames, options: TableOptions
) -> tuple[LabelTable, Layout | None]:
    for document in documents:
        if document.arrays is not None:
            if len(documents) > 1:
                raise InputError(f"{document.path} contains arrays: read it separately.")
            source = str(document.path)
            return table_from_arrays(document.arrays(), names, options, source), None
    sheet = stack_sheets([document.sheet() for document in documents])
    layout = find_layout(sheet.columns, names, sheet.source)
    return table_from_sheet(sheet, layout, options), layout
