"""Text tables (csv, tsv): every cell as text, fast where all is well, row by row where not."""

from __future__ import annotations

import csv
import io
import re
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.columns import check_distinct
from annotrace.labels.files import decode_text


class TextTable(NamedTuple):
    """A polars frame of text, and the number of each of its rows as a spreadsheet counts them."""

    frame: Any
    row_numbers: NDArray[np.int64]


def read_delimited(content: bytes, source: str) -> TextTable:
    """Read comma, tab or semicolon separated text with a header.

    Parameters
    ----------
    content : bytes
        The file, unpacked.
    source : str
        What to call the file in a message.

    Returns
    -------
    TextTable
        Columns of text; an empty cell is null or "".
    """
    text = decode_text(content, source)
    content = content.removeprefix("\ufeff".encode()).rstrip(b"\r\n")
    separator = _find_separator(text)
    _, header = next(_records(text, separator, source), (0, []))
    if not header:
        raise InputError(f"{source} is empty.")
    check_distinct(header, source)
    frame = _read_fast(content, header, separator)
    if frame is None:
        return _read_carefully(text, header, separator, source)
    if len(frame) == 0:
        raise InputError(_nothing_below(source))
    return TextTable(frame, np.arange(2, len(frame) + 2))


def _find_separator(text: str) -> str:
    line = re.search(r"[^\r\n]+", text)
    return max(",\t;", key=re.sub('"[^"]*"', "", line[0] if line else "").count)


def _read_fast(content: bytes, header: list[str], separator: str) -> Any:
    """Read with polars; None if a row may have too few or too many fields.

    Polars refuses long rows but fills short ones up, so that a shifted row would pass. None is
    short if the last column is full, or if the separators in the file make up the number.
    """
    import polars as pl

    try:
        frame = pl.read_csv(content, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.width != len(header) or b"\n" not in content:
        return None
    frame.columns = header
    if frame.to_series(-1).null_count():
        expected = (len(header) - 1) * (len(frame) + 1)
        if b'"' in content or content.count(separator.encode()) != expected:
            return None
    return frame


def _read_carefully(text: str, header: list[str], separator: str, source: str) -> TextTable:
    """Read with Python's csv module, which tells the row of a fault; blank lines are passed."""
    import polars as pl

    numbers, cells = [], []
    for number, record in islice(_records(text, separator, source), 1, None):
        if len(record) != len(header):
            raise InputError(
                f"{source}, row {number}: {len(record)} fields where the header has {len(header)} "
                f"({separator.join(record)[:60]!r}). Add or remove a field, or put quotes around "
                f"one that holds {separator!r}."
            )
        numbers.append(number)
        cells.append(record)
    if not cells:
        raise InputError(_nothing_below(source))
    columns = zip(header, zip(*cells, strict=True), strict=True)
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns})
    return TextTable(frame, np.array(numbers))


def _records(text: str, separator: str, source: str) -> Any:
    """Give the records that are not blank, with their numbers from 1."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    while True:
        number += 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"{source}, row {number}: {error}. Look for a quote that is not closed or stands "
                "inside a field; one inside quotes is written twice."
            ) from None
        if record:
            yield number, record


def _nothing_below(source: str) -> str:
    return f"{source} has a header and no rows below it."
