"""Label files: which files to read, their types and formats, and the labels in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from annotrace.errors import InputError, count
from annotrace.labels.arrays import NPY_OR_NPZ, labels_in_arrays
from annotrace.labels.building import Columns, TableOptions, TableParts, build_parts
from annotrace.labels.columns import ColumnNames, Layout
from annotrace.labels.delimited import DELIMITED
from annotrace.labels.documents import JSON, XML, Document, blank_document
from annotrace.labels.duckdb_files import DUCKDB_FILE
from annotrace.labels.files import Piped, check_file, check_known, open_unpacked
from annotrace.labels.formats import FORMATS, Format
from annotrace.labels.formats.base import Answer, Questions, Skipped
from annotrace.labels.layouts import find_layout, one_annotator_layout
from annotrace.labels.parquet import PARQUET_OR_ARROW
from annotrace.labels.sheets import Sheet, labels_in_sheet, stack_sheets, with_cache
from annotrace.labels.spreadsheets import XLSX
from annotrace.labels.sqlite_files import SQLITE_FILE
from annotrace.labels.vocabulary import Coded, as_text, encode_values
from annotrace.labels.whole_numbers import drop_decimals
from annotrace.limits import LABEL_LIMITS, Limits

Paths: TypeAlias = str | Path | Sequence[str | Path]
Share: TypeAlias = Callable[[Sheet, Sequence[Document]], Sheet]
_Located: TypeAlias = tuple[Document, Answer]

# Tried in this order: an xlsx file is a zip archive like npz, and any text may be delimited.
FILE_TYPES = (
    *(PARQUET_OR_ARROW, XLSX, NPY_OR_NPZ, SQLITE_FILE, DUCKDB_FILE, JSON, XML),
    DELIMITED,
)

_SUFFIXES = tuple(suffix for kind in reversed(FILE_TYPES) for suffix in kind.suffixes)
# What Hugging Face datasets saves beside the data, with the results of `map` and `filter`.
_NOT_LABELS = re.compile(
    r"(dataset_info|dataset_infos|dataset_dict|state|metadata)\.json|cache-\w+\.arrow"
)
_START = 4096
LARGE = 2**28
"""Bytes of all files together above which text is read in blocks."""


@dataclass(frozen=True)
class ExportOptions:
    """Options for reading the export of a tool or a database; see `LabelTable.read`."""

    format: str | None = None
    question: str | None = None
    annotator_name: str | None = None
    query: str | None = None


class Imported(NamedTuple):
    """What was read from an export: format, question, and the number of skipped answers by reason.

    `question` is None if the format has no questions; `blank` are files without a record.
    """

    title: str
    question: str | None
    skipped: Mapping[str, int]
    blank: tuple[str, ...] = ()


def read_parts(
    paths: Paths,
    names: ColumnNames,
    options: TableOptions,
    export: ExportOptions,
    limits: Limits = LABEL_LIMITS,
    share: Share | None = None,
) -> tuple[TableParts, Layout | Imported | None]:
    """Read the parts of a table from files; see `LabelTable.read`.

    Parameters
    ----------
    paths, names, options, export, limits
        As in `LabelTable.read`.
    share : callable, optional
        Returns the sheet of documents with columns that several processes read together.

    Returns
    -------
    parts : TableParts
    used : Layout, Imported or None
        The columns of a table, a summary of the export of a tool, or None for npy and npz.
    """
    documents = open_documents(paths, limits)
    if options.classes is not None:
        options = replace(options, classes=[str(name) for name in options.classes])
    format = None if export.query is not None else find_format(documents, export.format)
    used: Layout | Imported | None
    if format is None:
        sheet_columns = _read_sheets(documents, names, limits, export, share)
        columns, used = _without_decimals(*sheet_columns, options)
    else:
        _check_no_columns(names, format.title, documents[0].path)
        columns, used = import_answers(documents, format, export, names.item)
    _check_cells(columns, limits)
    parts = build_parts(columns, options)
    parts["source"] = columns.source if len(documents) == 1 else "the label files"
    return parts, used


def open_documents(paths: Paths, limits: Limits = LABEL_LIMITS) -> list[Document]:
    """Open the label files that paths name."""
    return [open_document(file, limits) for file in list_files(paths, limits)]


def _check_cells(columns: Columns, limits: Limits) -> None:
    for role in ("item", "annotator", "label"):
        names = as_text(getattr(columns, role).names)
        longest = int(np.strings.str_len(names).max(initial=0))
        limits.check_cell(longest, f"{columns.source}, {role} column")


def list_files(paths: Paths, limits: Limits = LABEL_LIMITS) -> list[Path]:
    """Return the files that paths name; a folder stands for all label files below it.

    A pattern such as ``labels/*.parquet`` stands for the files that match, in alphabetical order.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    nested = [
        _files_below(Path(path)) if Path(path).is_dir() else _matches(path) for path in listed
    ]
    files = [check_file(file, limits) for some in nested for file in some]
    if not files:
        raise InputError("Expected at least one file, but got none.")
    return files


def _matches(path: str | Path) -> list[str | Path]:
    pattern = Path(path)
    if isinstance(path, Piped) or pattern.exists() or not set("*?[") & set(str(path)):
        return [path]
    below = pattern.relative_to(pattern.anchor)
    found = sorted(file for file in Path(pattern.anchor).glob(str(below)) if file.is_file())
    if not found:
        raise InputError(f"{path}: no file matches this pattern.")
    return list(found)


def _files_below(folder: Path) -> list[Path]:
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if has_known_suffix(path)
        and not _NOT_LABELS.fullmatch(path.name)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
    if not found:
        raise InputError(
            f"{folder} is a folder without label files ({', '.join(_SUFFIXES)}, optionally .gz)."
        )
    return found


def has_known_suffix(path: str | Path) -> bool:
    """Whether a name ends like that of a file of labels or of another table."""
    return Path(path).name.lower().removesuffix(".gz").endswith(_SUFFIXES)


def open_document(path: str | Path, limits: Limits = LABEL_LIMITS) -> Document:
    """Open a label file as the first file type that recognises its content."""
    path = check_file(path, limits)
    with open_unpacked(path, limits) as file:
        start = file.read(_START)
    is_blank = bool(start) and not start.strip() and len(start) < _START
    start = start.removeprefix("\ufeff".encode()).lstrip()
    if is_blank:
        return blank_document(path)
    check_known(start, str(path))
    opened = (kind.open(path, start, limits) for kind in FILE_TYPES)
    document = next(document for document in opened if document is not None)
    return replace(document, limits=limits)


def _without_decimals(
    columns: Columns, layout: Layout | None, options: TableOptions
) -> tuple[Columns, Layout | None]:
    """Shorten the labels 1.0, 2.0, ... of a wide table, if there are missing ones, to 1, 2, ..."""
    if layout is None or not layout.wide:
        return columns, layout
    shorter = drop_decimals(columns, options)
    return shorter, replace(layout, without_decimals=shorter is not columns)


def _read_sheets(
    documents: Sequence[Document],
    names: ColumnNames,
    limits: Limits,
    export: ExportOptions,
    share: Share | None,
) -> tuple[Columns, Layout | None]:
    query = export.query
    for document in documents:
        if document.arrays is not None and query is None:
            if len(documents) > 1:
                raise InputError(f"{document.path} contains arrays: read it separately.")
            if export.annotator_name is not None:
                raise InputError(
                    f"{document.path} contains arrays, which have their own annotators. Remove "
                    "annotator_name= (--annotator-name)."
                )
            return labels_in_arrays(document.arrays(), names, str(document.path)), None
    is_large = sum(map(_size_on_disk, documents)) > LARGE
    sheets = [document.sheet(query, is_large=is_large) for document in documents]
    for sheet in sheets:
        limits.check_columns(len(sheet.columns), sheet.source)
    sheet = stack_sheets(sheets)
    sheet = with_cache(sheet if share is None else share(sheet, documents))
    if export.annotator_name is None:
        layout = find_layout(sheet, names)
    else:
        layout = one_annotator_layout(sheet, names, export.annotator_name)
    return labels_in_sheet(sheet, layout), layout


def _size_on_disk(document: Document) -> int:
    return document.path.stat().st_size if document.path.is_file() else 0


def _check_no_columns(names: ColumnNames, title: str, path: Path) -> None:
    for role in ("annotator", "label", "truth", "annotators"):
        if getattr(names, role) not in (None, ()):
            raise InputError(
                f"{path} is {title}, which has no column for {role}= (--{role}). Remove it; such "
                "files are read with question= and annotator_name=. If the file is a table, pass "
                "format='table' (--from table)."
            )


def find_format(documents: Sequence[Document], name: str | None) -> Format | None:
    """Return the named format, else the one detected by content; None if they are tables."""
    if name is not None:
        return _by_name(name)
    documents = [document for document in documents if not document.is_blank]
    found = [_detect(document) for document in documents]
    for document, other in zip(documents, found, strict=True):
        if other is not found[0]:
            raise InputError(
                f"{document.path} is {_title(other)} and {documents[0].path} is "
                f"{_title(found[0])}. Read them separately, or name their format with format= "
                "(--from)."
            )
        if other is not None:
            _check_no_doubt(document, other)
    return found[0] if found else None


def _check_no_doubt(document: Document, format: Format) -> None:
    for doubt in map(format.find_doubt, document.head):
        if doubt is not None:
            raise InputError(f"{document.path}: {doubt}.")


def _detect(document: Document) -> Format | None:
    for known in FORMATS:
        if any(map(known.sniff, document.head)) or known.sniff_columns(document.columns):
            return known
    return None


def _title(format: Format | None) -> str:
    return "a table" if format is None else format.title


def _by_name(name: str) -> Format | None:
    known = {"table": None} | {format.name: format for format in FORMATS}
    if name not in known:
        raise InputError(
            f"Expected `format` to be one of {', '.join(sorted(known))}, but got {name!r}."
        )
    return known[name]


def import_answers(
    documents: Sequence[Document], format: Format, options: ExportOptions, item: str | None
) -> tuple[Columns, Imported]:
    """Read the answers of documents of one format, and count the skipped ones."""
    questions, skipped = Questions(options.question), Counter[str]()
    labels, truth = list[_Located](), list[_Located]()
    file_names = names_of_files([document.path for document in documents])
    for document, file_name in zip(documents, file_names, strict=True):
        is_other_table = document.columns and not format.sniff_columns(document.columns)
        if document.records is None or is_other_table:
            raise InputError(f"{document.path} is a table, but not one of {format.title}.")
        for answer in format.read(document, questions, item):
            if isinstance(answer, Skipped):
                skipped[answer.reason] += 1
            elif answer.is_truth:
                truth.append((document, answer))
            else:
                name = answer.annotator or options.annotator_name or file_name
                if name is None:
                    raise InputError(
                        f"{document.place(answer.number)}: the file does not name the annotator. "
                        "Name the annotator with annotator_name= (--annotator-name), or read one "
                        "file per annotator, named after them."
                    )
                labels.append((document, answer._replace(annotator=name)))
    source = str(documents[0].path)
    questions.check_found(source)
    if not labels:
        details = f" ({describe_skipped(skipped)})" if skipped else ""
        raise InputError(
            f"{source} is read as {format.title} and has no labels{details}. Export answers that "
            "are classes, or name the format with format= (--from)."
        )
    question = questions.wanted or next(iter(questions.found), None)
    blank = tuple(document.path.name for document in documents if document.is_blank)
    used = Imported(format.title, question, dict(skipped), blank)
    return _columns(_in_order(labels), truth, source), used


def _in_order(labels: list[_Located]) -> list[_Located]:
    """Sort the labels of each item by the order in which they were given."""
    first: dict[str, int] = {}
    for _, answer in labels:
        first.setdefault(answer.item, len(first))
    return sorted(labels, key=lambda located: (first[located[1].item], located[1].order))


def names_of_files(paths: Sequence[Path]) -> list[str | None]:
    """Return the annotator that each of several files is named after; None for a single file.

    If the files have equal names, like those that CVAT packs into an archive, use the folders.
    """
    if len(paths) == 1:
        return [None]
    stems = [Path(path.name.removesuffix(".gz")).stem for path in paths]
    if len(set(stems)) == len(paths):
        return list(stems)
    folders = [path.absolute().parent.name for path in paths]
    return list(folders) if len(set(folders)) == len(paths) else [str(path) for path in paths]


def _columns(labels: list[_Located], truth: list[_Located], source: str) -> Columns:
    def where(row: int, role: str) -> str:
        document, answer = (truth if role == "truth" else labels)[row]
        what = "item" if role == "item" else f"{role} of item"
        return f"{document.place(answer.number)}, {what} {answer.item[:60]!r}"

    item, n_labels = encode_values([answer.item for _, answer in labels + truth]), len(labels)
    return Columns(
        source,
        item=Coded(item.codes[:n_labels], item.names),
        annotator=encode_values([answer.annotator for _, answer in labels]).sorted(),
        label=encode_values([answer.label for _, answer in labels]),
        where=where,
        truth=encode_values([answer.label for _, answer in truth]) if truth else None,
        truth_item=item.codes[n_labels:],
    )


def describe_skipped(skipped: Mapping[str, int]) -> str:
    """Describe the skipped answers, as in "3 answers skipped (2 cancelled, 1 draft)"."""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in skipped.items())
    return f"{count(sum(skipped.values()), 'answer')} skipped ({reasons})"
