"""Documents: label files as records, before it is known which tool wrote them; JSON and XML."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from numpy.typing import NDArray

from annotrace.errors import InputError, LimitError
from annotrace.labels.files import (
    BOM,
    check_unpacked,
    decode_text,
    has_start,
    open_unpacked,
    read_bytes,
)
from annotrace.labels.pandas_objects import frame_rows
from annotrace.labels.record_blocks import json_lines_sheet
from annotrace.labels.sheets import Sheet
from annotrace.labels.vocabulary import encode_values
from annotrace.limits import LABEL_LIMITS, Limits

HEAD = 20
_NESTED = frozenset([list, dict])
EXPORT_AGAIN = "Export the file again, or name its format with format= (--from)."

# Created once: json.loads creates one per line, which takes longer than parsing the line.
_DECODER = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=lambda name: None if name == "NaN" else name
)

# Characters such as emoji are escaped as a surrogate pair; an unpaired surrogate is not text.
_UNPAIRED_SURROGATE = re.compile(
    r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F].."
)


@dataclass(frozen=True)
class Document:
    """The content of a label file, read on demand: as records, as a sheet, or as arrays.

    Numbers in records are text, exactly as written, so that an id of 007 stays 007.

    Attributes
    ----------
    unit : str
        The name of a record in messages: line, record, row or element.
    head : sequence
        The first records (of XML: the root), by which the format is detected.
    records : callable or None
        Returns an iterator of all records with their numbers from 1; None if there are none.
    make_sheet : callable or None
        Returns the content as a sheet; by default it is made from the records.
    make_large_sheet : callable or None
        Returns the content as a sheet that is read in blocks, or None if it cannot be.
    run_query : callable or None
        Returns what a query selects from a database as a sheet.
    arrays : callable or None
        Returns the arrays of an npy or npz file by name.
    limits : Limits
        Those of the file, for JSON in its records.
    columns : sequence of str
        The header of a csv or tsv file, by which its format is detected.
    is_blank : bool
        Whether the file has no record, as a tool writes it for an annotator without answers.
    n_rows : int
        The number of rows, if `rows` is known.
    rows : callable or None
        Returns the rows from one number to another as a sheet; None if all have to be read.
    """

    path: Path
    unit: str
    head: Sequence[Any] = ()
    records: Callable[[], Iterator[tuple[int, Any]]] | None = None
    make_sheet: Callable[[], Sheet] | None = None
    make_large_sheet: Callable[[], Sheet | None] | None = None
    run_query: Callable[[str], Sheet] | None = None
    arrays: Callable[[], Mapping[str, NDArray[Any]]] | None = None
    limits: Limits = LABEL_LIMITS
    columns: Sequence[str] = ()
    is_blank: bool = False
    n_rows: int = 0
    rows: Callable[[int, int], Sheet] | None = None

    def place(self, number: int) -> str:
        """Return the name of a record for messages."""
        return f"{self.path}, {self.unit} {number}"

    def elements(self) -> Iterator[tuple[int, Any]]:
        """Iterate over the records with their numbers from 1."""
        return iter(()) if self.records is None else self.records()

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Iterate over the records with their numbers; each must be a JSON object."""
        for number, record in self.elements():
            if not isinstance(record, dict):
                raise InputError(f"{self.place(number)}: not a JSON object. {EXPORT_AGAIN}")
            yield number, record

    def sheet(self, query: str | None = None, *, is_large: bool = False) -> Sheet:
        """Return the content, or what a query selects from a database, as a sheet.

        One that is large is read in blocks where that is possible.
        """
        if query is None:
            if is_large and self.make_large_sheet and (sheet := self.make_large_sheet()):
                return sheet
            return self.make_sheet() if self.make_sheet else _sheet_from_records(self)
        if self.run_query is None:
            raise InputError(
                f"{self.path} is not a database. A query (query=, --query) is for SQLite and "
                "DuckDB files."
            )
        return self.run_query(query)


class FileType(NamedTuple):
    """A type of label files; to support another one, add it to `reading.FILE_TYPES`.

    Attributes
    ----------
    suffixes : tuple of str
        Which files of a folder are read.
    open : callable
        Given the path and the first bytes of a file, unpacked and without leading blanks, and the
        limits, returns a document, or None if it is a file of another type.
    """

    suffixes: tuple[str, ...]
    open: Callable[[Path, bytes, Limits], Document | None]


def json_value(value: Any) -> Any:
    """Convert a value to what a document of JSON has: str, bool, None, list and dict."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        return {name: json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(entry) for entry in value]
    return str(value)


def _open_json(path: Path, start: bytes, limits: Limits) -> Document | None:
    if start.startswith(b"{") and _first_line_is_json(path, limits):
        check_unpacked(path, limits)
        head = [record for _, record in islice(_read_lines(path, limits), HEAD)]
        large = has_start(path, start[:1]) or has_start(path, BOM)
        return Document(
            path,
            "line",
            head,
            lambda: _read_lines(path, limits),
            make_large_sheet=(lambda: json_lines_sheet(path)) if large else None,
        )
    if not start.startswith(b"{") and not re.match(rb"\[\s*[{\]\[]", start):
        return None
    text = decode_text(read_bytes(path, limits), str(path))
    try:
        parsed = parse_json(text, str(path), limits)
    except json.JSONDecodeError as error:
        if re.match(rb"\[\s*\[", start):
            return None  # A delimited table whose first column name starts like a list.
        raise InputError(
            f"{path}, line {error.lineno}: not JSON ({error.msg} at character {error.colno}). "
            "If the file is truncated, copy or export it again."
        ) from None
    records = parsed if isinstance(parsed, list) else [parsed]
    if not records:
        return blank_document(path, "an empty list")
    if isinstance(records[0], list):
        raise InputError(
            f"{path} is a list of lists, which has no names of columns. Write one object per row "
            "(with pandas: orient='records'), or a csv file with a header."
        )
    return Document(path, "record", records[:HEAD], lambda: enumerate(records, start=1))


def blank_document(path: Path, what: str = "empty") -> Document:
    """Return the document of a file without records; read as a table, it raises an error."""

    def raise_error() -> Sheet:
        raise InputError(f"{path} is {what}. Export the file again, with its labels.")

    return Document(path, "record", (), lambda: iter(()), raise_error, is_blank=True)


def _open_xml(path: Path, start: bytes, limits: Limits) -> Document | None:
    if not start.startswith(b"<"):
        return None
    if start[:14].lower().startswith((b"<!doctype html", b"<html")):
        raise InputError(
            f"{path} is a web page (HTML), such as a server sends with an error or for a login. "
            "Download the export again."
        )
    parser = ElementTree.XMLParser(target=_TreeBuilder(path, limits))
    try:
        parser.feed(read_bytes(path, limits))
        root = parser.close()
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        if not start.startswith((b"<?xml", b"<annotations")):
            return None  # A delimited table whose first column name starts like a tag.
        raise InputError(
            f"{path}: invalid XML ({error}). If the file is truncated, export it again."
        ) from None

    def raise_error() -> Sheet:
        raise InputError(f"{path} is XML in an unknown format. Only CVAT for images is supported.")

    return Document(path, "element", [root], lambda: enumerate(root, start=1), raise_error)


class _TreeBuilder(ElementTree.TreeBuilder):
    """Builds a tree of limited depth without a document type, which could define entities."""

    def __init__(self, path: Path, limits: Limits) -> None:
        super().__init__()
        self._path, self._limits, self._depth = path, limits, 0

    def start(self, tag: Any, attrs: dict[Any, Any]) -> Any:
        self._depth += 1
        self._limits.check_depth(self._depth, str(self._path))
        return super().start(tag, attrs)

    def end(self, tag: str) -> Any:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, public_id: str | None, system: str | None) -> None:
        raise InputError(
            f"{self._path} defines XML entities or a document type (<!DOCTYPE>), which can exhaust "
            "memory. Remove them from the file."
        )


JSON = FileType((".json", ".jsonl", ".ndjson", ".manifest"), _open_json)
XML = FileType((".xml",), _open_xml)


def _sheet_from_records(document: Document) -> Sheet:
    numbered: dict[Any, dict[str, Any]] = dict(document.objects())
    unit = document.unit
    if len(numbered) == 1 and (rows := frame_rows(*numbered.values())):
        unit, numbered = "index", dict(rows)
    numbers, records = list(numbered), list(numbered.values())
    fields = list(dict.fromkeys(field for record in records for field in record))
    return Sheet(
        str(document.path),
        fields,
        lambda name: encode_values([_as_written(record.get(name)) for record in records]),
        lambda row, name: f"{document.path}, {unit} {numbers[row]}: field {name!r}",
    )


def _as_written(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | dict) else value


def _first_line_is_json(path: Path, limits: Limits) -> bool:
    """Whether it is JSON lines rather than one object over several lines."""
    try:
        next(_read_lines(path, limits), None)
    except LimitError:
        raise
    except InputError:
        return False
    return True


def _read_lines(path: Path, limits: Limits) -> Iterator[tuple[int, Any]]:
    with open_unpacked(path, limits) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, _parse_line(line, path, number, limits)


def _parse_line(line: bytes, path: Path, number: int, limits: Limits) -> dict[str, Any]:
    place = f"{path}, line {number}"
    try:
        record = parse_json(decode_text(line, str(path), first_line=number), place, limits)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{place}: not JSON ({error.msg} at character {error.pos + 1}). "
            "Write one object per line."
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"{place}: not a JSON object. Write one object per line.")
    if not isinstance(next(iter(record.values()), None), dict):  # Else they may be rows of pandas.
        limits.check_columns(len(record), place)
    return record


def parse_json(text: str, source: str, limits: Limits) -> Any:
    """Parse JSON of limited depth; numbers become text, and text has no unpaired surrogate."""
    try:
        parsed = _DECODER.decode(text)
    except RecursionError:
        limits.check_depth(sys.getrecursionlimit(), source)
        raise InputError(f"{source}: nested deeper than Python can parse.") from None
    if text.count("[") + text.count("{") > limits.max_depth:
        limits.check_depth(_depth(parsed), source)
    # The plain search first: the expression alone takes seconds on 100 MB.
    if ("\\ud" in text or "\\uD" in text) and (half := _UNPAIRED_SURROGATE.search(text)):
        try:
            json.dumps(parsed, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise json.JSONDecodeError("unpaired surrogate", text, half.start()) from None
    return parsed


def _depth(value: Any) -> int:
    """Return the number of nested levels of lists and objects."""
    level: list[Any] = [[value]]
    depth = -1
    while level:
        depth += 1
        level = [
            child
            for parent in level
            for child in (parent if type(parent) is list else parent.values())
            if type(child) in _NESTED
        ]
    return depth
