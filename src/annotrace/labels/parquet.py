"""Parquet and arrow files, with the class names of Hugging Face datasets."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from annotrace.errors import InputError, RunError
from annotrace.labels.columns import INDEX_COLUMN, has_item_column
from annotrace.labels.documents import HEAD, Document, FileType, json_value
from annotrace.labels.files import (
    ARROW,
    EXPORT_OR_OMIT,
    PARQUET,
    damage_as_error,
    has_start,
    read_bytes,
    size_of,
)
from annotrace.labels.parquet_columns import ParquetColumns
from annotrace.labels.sheets import Sheet, frame_sheet
from annotrace.limits import Limits
from annotrace.storage import read_regular

Features: TypeAlias = Mapping[str, Any]

_VALUE_SIZE = 8  # bytes in memory; text takes twice as many
_FIRST_ROWS = 1000
_MAX_INFO = 2**24


def _open(path: Path, start: bytes, limits: Limits) -> Document | None:
    if not start.startswith((PARQUET, ARROW)):
        return None
    if has_start(path, PARQUET):
        return _open_columns(path, limits)
    content, is_arrow = io.BytesIO(read_bytes(path, limits)), start.startswith(ARROW)
    frame = read_frame(content, path, "arrow" if is_arrow else "parquet", limits)
    if len(frame) == 0:
        raise InputError(f"{path} has no rows. {EXPORT_OR_OMIT}")
    index = None if is_arrow else _read_range_index(content, len(frame))
    frame = name_classes(frame, _read_features(path, content, is_arrow))
    head = [record for _, record in frame_records(frame.head(HEAD))]
    return Document(
        path, "row", head, lambda: frame_records(frame), lambda: _sheet(frame, path, index)
    )


def _open_columns(path: Path, limits: Limits) -> Document:
    """Open a parquet file on disk, whose columns are read when they are needed."""
    import polars as pl

    source, packed_size = str(path), path.stat().st_size
    with damage_as_error(source, "parquet", pl.exceptions.PolarsError, OSError):
        lazy = pl.scan_parquet(path, glob=False)
        n_rows = lazy.select(pl.len()).collect().item()
        _check_frame(lazy, n_rows, packed_size, source, limits)
        index = _read_range_index(path, n_rows)
    if n_rows == 0:
        raise InputError(f"{path} has no rows. {EXPORT_OR_OMIT}")
    features = _read_features(path, path, is_arrow=False)
    columns = ParquetColumns(
        path, lazy, n_rows, packed_size, limits, lambda frame: name_classes(frame, features)
    )

    names = lazy.collect_schema().names()
    head = [record for _, record in frame_records(columns.read(length=HEAD))]
    document = Document(path, "row", head, lambda: frame_records(columns.read()), columns.sheet)
    if index is not None and not _names_items(names, index):
        return replace(document, make_sheet=lambda: _sheet(columns.read(), path, index))
    return replace(
        document, n_rows=n_rows, rows=lambda start, stop: columns.rows(start, stop).sheet()
    )


PARQUET_OR_ARROW = FileType((".parquet", ".arrow"), _open)


def read_frame(content: IO[bytes], path: Path, kind: str, limits: Limits) -> Any:
    """Read a polars frame from a file whose `kind` is "parquet" or "arrow"."""
    import polars as pl

    source, packed_size = str(path), size_of(content)
    with damage_as_error(source, kind, pl.exceptions.PolarsError, OSError):
        if kind == "parquet":
            lazy = pl.scan_parquet(content)
            n_rows = lazy.select(pl.len()).collect().item()
            _check_frame(lazy, n_rows, packed_size, source, limits)
            content.seek(0)
            frame = pl.read_parquet(content)
        else:
            frame = pl.read_ipc_stream(content)
            _check_frame(frame.lazy(), len(frame), packed_size, source, limits)
        # Values that a file holds once may be repeated any number of times in text and lists.
        limits.check_size(int(frame.estimated_size()), packed_size, source)
        return frame


def _check_frame(lazy: Any, n_rows: int, packed_size: int, source: str, limits: Limits) -> None:
    """Check the width, depth and estimated memory of a lazy frame."""
    schema = lazy.collect_schema()
    limits.check_columns(len(schema), source)
    for kind in schema.values():
        limits.check_depth(_depth(kind), source)
    limits.check_size(n_rows * len(schema) * _VALUE_SIZE, packed_size, source)
    for size in _text_sizes(lazy, n_rows, schema):
        limits.check_size(size, packed_size, source)


def _text_sizes(lazy: Any, n_rows: int, schema: Mapping[str, Any]) -> Iterator[int]:
    """Yield the size of categories as text, of more and more rows.

    A file holds each category once, and polars takes long to read many rows of a long one.
    """
    import polars as pl

    names = [name for name, kind in schema.items() if kind in (pl.Categorical, pl.Enum)]
    sizes = pl.col(names).cat.len_bytes().cast(pl.Int64).sum()
    total, start, length = 0, 0, _FIRST_ROWS
    while names and start < n_rows:
        total += sum(lazy.slice(start, length).select(sizes).collect().row(0))
        yield total
        start, length = start + length, 2 * length


def _depth(kind: Any) -> int:
    """Return the number of nested levels of a polars type."""
    if not kind.is_nested():
        return 0
    inner = [field.dtype for field in getattr(kind, "fields", [])] or [kind.inner]
    return 1 + max(map(_depth, inner))


def _sheet(frame: Any, path: Path, index: RangeIndex | None) -> Sheet:
    """Return a frame as a sheet, with the index of pandas if no column names the items."""
    import polars as pl

    if index is not None and not _names_items(frame.columns, index):
        frame = frame.select(pl.Series(index.name, index.values), pl.all())
    sheet = frame_sheet(frame, str(path))
    return replace(sheet, column=lambda name: sheet.column(name).as_text())


def frame_records(frame: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the rows of a polars frame as records, with their numbers from 1."""
    return enumerate(map(json_value, frame.iter_rows(named=True)), start=1)


def name_classes(frame: Any, features: Features) -> Any:
    """Replace codes by the `names` of class labels in a polars frame; -1 becomes null."""
    import polars as pl

    for column in frame.columns:
        kind = features.get(column)
        names = kind.get("names") if isinstance(kind, Mapping) else None
        if isinstance(names, list) and frame[column].dtype.is_integer():
            codes = frame[column]
            known = codes.is_between(0, len(names) - 1)
            named = pl.Series(names, dtype=pl.String).gather(codes.set(~known, None))
            frame = frame.with_columns(named.alias(column))
    return frame


def _names_items(columns: Sequence[str], index: RangeIndex) -> bool:
    return has_item_column(columns) or index.name in columns


class RangeIndex(NamedTuple):
    """The index of a pandas frame that numbers the rows, which is stored in metadata only."""

    name: str
    values: range


def _read_range_index(content: IO[bytes] | Path, n_rows: int) -> RangeIndex | None:
    """Return the index that pandas describes in the metadata of a parquet file, None if none."""
    try:
        (index,) = json.loads(_read_metadata(content)["pandas"])["index_columns"]
        values = range(*(int(index[part]) for part in ("start", "stop", "step")))
        name = str(index["name"] or INDEX_COLUMN)
        return RangeIndex(name, values) if len(values) == n_rows else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _read_metadata(content: IO[bytes] | Path) -> Mapping[str, str]:
    import polars as pl

    if not isinstance(content, Path):
        content.seek(0)
    metadata: Mapping[str, str] = pl.read_parquet_metadata(content)
    return metadata


def _read_features(path: Path, content: IO[bytes] | Path, is_arrow: bool) -> Features:
    """Read the description that Hugging Face saves next to arrow or inside parquet; {} if none."""
    try:
        if is_arrow:
            info = json.loads(read_regular(path.parent / "dataset_info.json", _MAX_INFO))
        else:
            info = json.loads(_read_metadata(content)["huggingface"])["info"]
        features = info["features"]
    except (RunError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}
