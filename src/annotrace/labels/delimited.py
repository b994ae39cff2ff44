"""Text with a header and separated by commas, tabs or semicolons: csv and tsv files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.columns import check_distinct
from annotrace.labels.documents import Document, FileType
from annotrace.labels.files import BOM, EXPORT_OR_OMIT, decode_text, is_packed, read_bytes
from annotrace.labels.formulas import unguard_names, unguard_texts
from annotrace.labels.record_blocks import record_blocks, sheet_of_blocks
from annotrace.labels.sheets import Sheet
from annotrace.labels.text_coding import encode_text
from annotrace.limits import LABEL_LIMITS, Limits

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
            lambda name: encode_text(self.frame[name]),
            lambda row, name: f"{source}, row {self.row_numbers[row]}, column {name!r}",
            lambda name: iter([self.frame[name]]),
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
        make_large_sheet=None if is_packed(path) else lambda: large_sheet(path),
        columns=_names_in(start),
    )


def _names_in(start: bytes) -> list[str]:
    """Return the names of columns from the first bytes of a file, which may cut the last one."""
    line = next(iter(start.decode(errors="replace").splitlines()), "")
    separator, _ = _likely_separator(line)
    try:
        return unguard_names(next(csv.reader([line], delimiter=separator), []))
    except csv.Error:
        return []


DELIMITED = FileType((".csv", ".tsv"), _open_delimited)


def large_sheet(path: Path) -> Sheet | None:
    """Return a large csv or tsv file as a sheet, None if rows may differ in length.

    Parameters
    ----------
    path : Path
        A file that is not packed.
    """
    try:
        start = next(record_blocks(path, quoted=True))
        header = start[: start.index(b"\n")].rstrip(b"\r").decode()
        separator, _ = _likely_separator(header)
        names = unguard_names(next(csv.reader([header], delimiter=separator)))
        check_distinct(names, str(path))
        frames = (
            _read_fast(block, names, separator, has_header=is_first)
            for block, is_first in _blocks(path)
        )
        if any(frame is None for frame in frames):
            return None
    except (ValueError, StopIteration, csv.Error):
        return None

    def read(name: str) -> Iterator[Any]:
        import polars as pl

        options: Any = {"separator": separator, "columns": [names.index(name)]}
        for block, is_first in _blocks(path):
            frame = pl.read_csv(block, has_header=is_first, infer_schema=False, **options)
            yield unguard_texts(frame).to_series()

    return sheet_of_blocks(
        str(path), names, read, lambda row, name: f"{path}, row {row + 2}, column {name!r}"
    )


def _blocks(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Iterate over the blocks of a file, and whether a block begins with the header."""
    for place, block in enumerate(record_blocks(path, quoted=True)):
        yield _without_blank_end(block), place == 0


def read_delimited(content: bytes, source: str, limits: Limits = LABEL_LIMITS) -> TextTable:
    """Read text with a header, separated by commas, tabs or semicolons.

    `source` names the file in messages. An empty cell is null or "".
    """
    content = content.removeprefix(BOM)
    header, separator = _read_header(content, source, limits)
    frame = _read_fast(_without_blank_end(content), header, separator)
    if frame is not None:
        return TextTable(unguard_texts(frame), np.arange(2, len(frame) + 2))
    rows = list(_records(decode_text(content, source), separator, source, limits))[1:]
    for number, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{source}, row {number}: expected {len(header)} fields as in the header, but got "
                f"{len(row)} ({separator.join(row)[:60]!r}). Add or remove a field, or quote a "
                f"field that contains {separator!r}."
            )
    return table_from_rows(header, rows, source)


def _read_header(content: bytes, source: str, limits: Limits) -> tuple[list[str], str]:
    """Return the first record that is not blank, and the separator; decode no more than needed."""
    first = re.search(rb"[^\r\n]+", content)
    line = decode_text(content[: first.end()] if first else content, source).lstrip("\r\n")
    separator, n_columns = _likely_separator(line)
    limits.check_columns(n_columns, source)
    # A name may contain a line feed.
    text = line if line.count('"') % 2 == 0 else decode_text(content, source)
    _, header = next(_records(text, separator, source, limits), (0, []))
    if not header:
        raise InputError(f"{source} is empty. {EXPORT_OR_OMIT}")
    header = unguard_names(header)
    check_distinct(header, source)
    return header, separator


def _without_blank_end(content: bytes) -> bytes:
    """Remove blank lines at the end; content without any is not copied."""
    has_one_end = re.search(rb"[^\r\n]\r?\n?\Z", content[-3:])
    return content if has_one_end else content.rstrip(b"\r\n")


def _likely_separator(header: str) -> tuple[str, int]:
    """Return the separator of a header that occurs most, and the number of columns."""
    unquoted = re.sub('"[^"]*"', "", header)
    separator = max(",\t;", key=unquoted.count)
    return separator, unquoted.count(separator) + 1


def _read_fast(
    content: bytes, header: list[str], separator: str, *, has_header: bool = True
) -> Any:
    """Read with polars; return None if a row may have too few or too many fields.

    Polars refuses long rows but pads short ones, so that a shifted row would pass. No row is short
    if the last column has no null, or if the file has the expected number of separators.
    """
    import polars as pl

    if b"\0" in content:
        return None
    try:
        options: Any = {"separator": separator, "has_header": has_header}
        frame = pl.read_csv(content, infer_schema=False, **options)
    except pl.exceptions.PolarsError:
        return None
    if frame.width != len(header) or len(frame) == 0:
        return None
    frame.columns = header
    if frame.to_series(-1).null_count():
        expected = (len(header) - 1) * (len(frame) + has_header)
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


def table_from_rows(header: list[str], rows: list[Row], source: str) -> TextTable:
    """Return rows of as many cells as the header has names as a table."""
    import polars as pl

    if not rows:
        raise InputError(f"{source} has a header and no rows below it. {EXPORT_OR_OMIT}")
    numbers, cells = zip(*rows, strict=True)
    columns = zip(header, zip(*cells, strict=True), strict=False)
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns})
    return TextTable(unguard_texts(frame), np.array(numbers))
