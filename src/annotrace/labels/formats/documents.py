"""Files taken apart into records, before it is known which tool wrote them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from annotrace.errors import InputError
from annotrace.labels.columns import names_items
from annotrace.labels.files import (
    ARROW,
    PARQUET,
    check_file,
    decode_text,
    open_unpacked,
    read_bytes,
)
from annotrace.labels.hugging_face import features_of_file, name_classes

HEAD = 20
_START = 4096

# Made once: json.loads makes one for every line, which takes longer than the line.
_DECODER = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=lambda name: None if name == "NaN" else name
)

# Characters such as emoji are escaped as two halves; one without the other is no text.
_HALF_A_CHARACTER = re.compile(
    r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F].."
)


@dataclass(frozen=True)
class Document:
    """A file as records: of JSON, of rows, or the elements of XML.

    Numbers are text, just as they are written, so that an id of 007 stays one.

    Attributes
    ----------
    path : Path
    unit : str
        What a record is called in a message: line, record, row or element.
    head : sequence
        The first records (of XML: the root), to tell the format by.
    records : callable
        Gives all records with their numbers from 1. Those of JSON lines are read one by one.
    frame : polars frame or None
        What a parquet or arrow file holds.
    """

    path: Path
    unit: str
    head: Sequence[Any]
    records: Callable[[], Iterator[tuple[int, Any]]]
    frame: Any = None

    def place(self, number: int) -> str:
        """Name a record for a message."""
        return f"{self.path}, {self.unit} {number}"


def open_document(path: str | Path) -> Document | None:
    """Take a file apart; None if it is neither JSON, XML, parquet nor arrow."""
    path = check_file(path)
    with open_unpacked(path) as file:
        start = file.read(_START).removeprefix("\ufeff".encode()).lstrip()
    if start.startswith((PARQUET, ARROW)):
        return _open_frame(path)
    if start.startswith(b"{") and _first_line_is_whole(path):
        return _open_lines(path)
    if start.startswith(b"{") or re.match(rb"\[\s*[{\]]", start):
        return _open_json(path)
    if start.startswith((b"<?xml", b"<annotations")):
        return _open_xml(path)
    if start.startswith(b"<"):
        return _open_other_xml(path)
    return None


def _open_lines(path: Path) -> Document:
    head = [record for _, record in islice(_read_lines(path), HEAD)]
    return Document(path, "line", head, lambda: _read_lines(path))


def _open_json(path: Path) -> Document:
    text = decode_text(read_bytes(path), str(path))
    try:
        parsed = _parse(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not JSON ({error.msg} at character {error.colno}). "
            "If the file was cut short, copy or export it again."
        ) from None
    records = parsed if isinstance(parsed, list) else [parsed]
    if not records:
        raise InputError(f"{path} is an empty list. Export the file again, with its labels.")
    return Document(path, "record", records[:HEAD], lambda: enumerate(records, start=1))


def _open_xml(path: Path) -> Document:
    content = read_bytes(path)
    if b"<!ENTITY" in content:
        raise InputError(f"{path} defines XML entities, which can blow up memory. Remove them.")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise InputError(
            f"{path}: not whole XML ({error}). If the file was cut short, export it again."
        ) from None
    return Document(path, "element", [root], lambda: enumerate(root, start=1))


def _open_other_xml(path: Path) -> Document | None:
    """Take XML apart; None if it is a table whose first name begins like a tag."""
    try:
        return _open_xml(path)
    except InputError:
        return None


def _open_frame(path: Path) -> Document:
    import polars as pl

    content = io.BytesIO(read_bytes(path))
    arrow = content.getvalue().startswith(ARROW)
    try:
        frame = pl.read_ipc_stream(content) if arrow else pl.read_parquet(content)
    except (pl.exceptions.PolarsError, OSError) as error:
        first_line = str(error).split("\n", 1)[0]
        kind = "arrow" if arrow else "parquet"
        raise InputError(f"{path} is a damaged {kind} file ({first_line}).") from None
    if len(frame) == 0:
        raise InputError(f"{path} has no rows.")
    frame = name_classes(frame, features_of_file(path, content, arrow))
    rows = frame.head(HEAD).iter_rows(named=True)
    return Document(path, "row", [plain(row) for row in rows], lambda: frame_rows(frame), frame)


def frame_rows(frame: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the rows of a polars frame as records."""
    return enumerate(map(plain, frame.iter_rows(named=True)), start=1)


def plain(value: Any) -> Any:
    """Turn a value into what JSON would give here: text, true, false, None, lists and objects."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return str(value)


def rows_by_index(record: Any) -> dict[str, dict[str, Any]]:
    """Give the rows of a frame that pandas wrote as an object: of columns, or of rows.

    Nothing where the object is no such frame. Columns all have the same index; rows name a column
    of items.
    """
    parts = list(record.values()) if isinstance(record, dict) else []
    if not parts or not all(isinstance(part, dict) for part in parts):
        return {}
    if names_items(list(parts[0])):
        return dict(record)
    if any(list(part) != list(parts[0]) for part in parts):
        return {}
    return {index: {name: values[index] for name, values in record.items()} for index in parts[0]}


def _first_line_is_whole(path: Path) -> bool:
    """Tell JSON lines from an object that is spread over lines."""
    try:
        next(_read_lines(path), None)
    except InputError:
        return False
    return True


def _read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with open_unpacked(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, _parse_line(line, path, number)


def _parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = _parse(decode_text(line, str(path), first_line=number))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {number}: not JSON ({error.msg} at character {error.pos + 1}). "
            "Write one object a line."
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"{path}, line {number}: not a JSON object. Write one object a line.")
    return record


def _parse(text: str) -> Any:
    parsed = _DECODER.decode(text)
    # The plain search first: the expression alone takes seconds for 100 MB.
    if ("\\ud" in text or "\\uD" in text) and (half := _HALF_A_CHARACTER.search(text)):
        try:
            json.dumps(parsed, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise json.JSONDecodeError("half of a character", text, half.start()) from None
    return parsed
