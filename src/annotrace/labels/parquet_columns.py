"""Parquet files on disk, of which one column is read at a time, and text part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from annotrace.labels.files import damage_as_error
from annotrace.labels.sheets import Sheet
from annotrace.labels.text_coding import encode_series, encode_texts
from annotrace.labels.vocabulary import Coded
from annotrace.limits import Limits
from annotrace.progress import StageParts

# Rows of a column that are in memory at a time.
PART_ROWS = 2**22


@dataclass(frozen=True)
class ParquetColumns:
    """The columns of a parquet file.

    Attributes
    ----------
    path : Path
    lazy : polars.LazyFrame
    n_rows : int
    packed_size : int
        Bytes of the file.
    limits : Limits
    rename : callable
        Replaces codes by the names of classes in a frame.
    """

    path: Path
    lazy: Any
    n_rows: int
    packed_size: int
    limits: Limits
    rename: Callable[[Any], Any]

    @cached_property
    def progress(self) -> StageParts:
        """Of reading three columns: items, annotators and labels."""
        return StageParts("Reading labels, part of a column", 3 * -(-self.n_rows // PART_ROWS))

    def read(self, *names: str, start: int = 0, length: int | None = None) -> Any:
        """Read some rows of some columns, by default all rows, as a polars frame."""
        import polars as pl

        source = str(self.path)
        with damage_as_error(source, "parquet", pl.exceptions.PolarsError, OSError):
            chosen = self.lazy.select(pl.col(list(names))) if names else self.lazy
            frame = chosen.slice(start, length).collect()
        # Values that a file holds once may be repeated any number of times in text and lists.
        self.limits.check_size(int(frame.estimated_size()), self.packed_size, source)
        return self.rename(frame)

    def rows(self, start: int, stop: int) -> ParquetColumns:
        """Return some rows; polars leaves out the row groups that have none of them."""
        n_rows = stop - start
        return replace(self, lazy=self.lazy.slice(start, n_rows), n_rows=n_rows)

    def sheet(self) -> Sheet:
        """Return the file as a sheet."""
        names = self.lazy.collect_schema().names()
        return Sheet(str(self.path), names, self._column, texts=self._texts)

    def _column(self, name: str) -> Coded:
        texts = self._texts(name)
        if texts is not None:
            return encode_texts(self.progress.of(texts))
        return encode_series(self.read(name)[name]).as_text()

    def _texts(self, name: str) -> Iterator[Any] | None:
        """Return an iterator of the parts of a column of text or integers; None for others."""
        import polars as pl

        dtype = self.read(name, length=1)[name].dtype
        if not dtype.is_integer() and dtype not in (pl.String, pl.Categorical, pl.Enum):
            return None
        return self._parts(name)

    def _parts(self, name: str) -> Iterator[Any]:
        import polars as pl

        for start in range(0, self.n_rows, PART_ROWS):
            yield self.read(name, start=start, length=PART_ROWS)[name].cast(pl.String)
