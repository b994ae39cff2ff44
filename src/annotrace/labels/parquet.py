"""Parquet and arrow files, with the class names of Hugging Face datasets."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias

from annotrace.errors import InputError
from annotrace.labels.documents import HEAD, Document, FileType, json_value
from annotrace.labels.files import ARROW, PARQUET, read_bytes
from annotrace.labels.sheets import Sheet, frame_sheet

Features: TypeAlias = Mapping[str, Any]


def _open(path: Path, start: bytes) -> Document | None:
    if not start.startswith((PARQUET, ARROW)):
        return None
    content, is_arrow = io.BytesIO(read_bytes(path)), start.startswith(ARROW)
    frame = read_frame(content, path, "arrow" if is_arrow else "parquet")
    if len(frame) == 0:
        raise InputError(f"{path} has no rows.")
    frame = name_classes(frame, _read_features(path, content, is_arrow))
    head = [record for _, record in frame_records(frame.head(HEAD))]
    return Document(path, "row", head, lambda: frame_records(frame), lambda: _sheet(frame, path))


PARQUET_OR_ARROW = FileType((".parquet", ".arrow"), _open)


def read_frame(content: IO[bytes], path: Path, kind: str) -> Any:
    """Read a polars frame from a file whose `kind` is "parquet" or "arrow"."""
    import polars as pl

    try:
        return (pl.read_ipc_stream if kind == "arrow" else pl.read_parquet)(content)
    except (pl.exceptions.PolarsError, OSError) as error:
        first_line = str(error).split("\n", 1)[0]
        raise InputError(f"{path} is a damaged {kind} file ({first_line}).") from None


def _sheet(frame: Any, path: Path) -> Sheet:
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


def _read_features(path: Path, content: io.BytesIO, is_arrow: bool) -> Features:
    """Read the description that Hugging Face saves next to arrow or inside parquet; {} if none."""
    import polars as pl

    content.seek(0)
    try:
        if is_arrow:
            info = json.loads((path.parent / "dataset_info.json").read_text(encoding="utf-8"))
        else:
            info = json.loads(pl.read_parquet_metadata(content)["huggingface"])["info"]
        features = info["features"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}
