"""Limits on files, so that a small hostile file cannot exhaust memory or time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NoReturn

from annotrace.errors import InputError, LimitError

# Smaller files may expand by any factor: even zeros unpack to this size within a second.
FREE_SIZE = 2**27


@dataclass(frozen=True)
class Limits:
    """The largest files that are read; a file that exceeds a limit raises `LimitError`.

    Parameters
    ----------
    max_size : int
        Bytes of a file after unpacking.
    max_expansion : int
        Ratio of the size after unpacking to the size of the file, checked above 128 MiB. Label
        files shrink to between a half and a thirtieth.
    max_columns : int
        Columns of a table.
    max_cell : int
        Characters of the name of an item, annotator or class.
    max_depth : int
        Levels of nested JSON, XML or columns.
    max_seconds : int
        Seconds that a database may take to answer a query.

    Examples
    --------
    >>> Limits(max_columns=2).check_columns(3, "labels.csv")
    Traceback (most recent call last):
    ...
    annotrace.errors.LimitError: labels.csv: 3 columns exceed the limit of 2. If you trust the \
file, raise the limit with limits=Limits(max_columns=...) (--max-columns on the command line).
    """

    max_size: int = 2**32
    max_expansion: int = 200
    max_columns: int = 50_000
    max_cell: int = 131_072
    max_depth: int = 100
    max_seconds: int = 60

    def __post_init__(self) -> None:
        for name in (part.name for part in fields(self)):
            value: Any = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"Expected `{name}` to be a positive integer, but got {value!r}.")

    def check_size(self, size: int, packed_size: int, source: str) -> None:
        """Check the size in bytes after unpacking `packed_size` bytes."""
        if size > self.max_size:
            _raise(source, f"{size:,} bytes (unpacked) exceed", self.max_size, "max_size")
        if size > max(FREE_SIZE, self.max_expansion * packed_size):
            found = f"{packed_size:,} bytes that unpack to {size:,} or more"
            _raise(source, f"an expansion of {found} exceeds", self.max_expansion, "max_expansion")

    def check_columns(self, n_columns: int, source: str) -> None:
        """Check the number of columns."""
        if n_columns > self.max_columns:
            _raise(source, f"{n_columns:,} columns exceed", self.max_columns, "max_columns")

    def check_cell(self, n_characters: int, source: str) -> None:
        """Check the length of a name."""
        if n_characters > self.max_cell:
            _raise(
                source, f"a cell of {n_characters:,} characters exceeds", self.max_cell, "max_cell"
            )

    def check_depth(self, depth: int, source: str) -> None:
        """Check the number of nested levels."""
        if depth > self.max_depth:
            _raise(source, f"{depth} nested levels exceed", self.max_depth, "max_depth")

    def raise_seconds(self, source: str) -> NoReturn:
        """Raise the error for a query that takes too long."""
        _raise(source, "the seconds of a query exceed", self.max_seconds, "max_seconds")


LABEL_LIMITS = Limits()
# Arrays of features are larger than tables of labels, and sparse ones compress well.
FEATURE_LIMITS = Limits(max_size=2**36, max_expansion=1000)

# About 8 bytes per pixel are in use at a time (an image and its converted copy): half a gigabyte.
# Cameras of more pixels write JPEG, which is decoded at a reduced size.
MAX_PIXELS = 64_000_000
# Images that are learned from are decoded once, into an array of at most this size: 700,000 images
# of 64 x 64 in colour.
MAX_DECODED_BYTES = 2**33
# Members of all tar files that are read as one source of images.
MAX_MEMBERS = 10_000_000


def _raise(source: str, exceeds: str, limit: int, name: str) -> NoReturn:
    option = name.replace("_", "-")
    raise LimitError(
        f"{source}: {exceeds} the limit of {limit:,}. If you trust the file, raise the limit with "
        f"limits=Limits({name}=...) (--{option} on the command line)."
    )
