"""Hugging Face datasets: their tables, and classes by name instead of by number."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Features = Mapping[str, Any]


def is_dataset(value: Any) -> bool:
    """Tell a `datasets.Dataset` by what it can do, for the package need not be there."""
    return hasattr(value, "with_format") and hasattr(value, "features")


def frame_of_dataset(dataset: Any) -> Any:
    """Give the rows of a dataset, with what was selected and shuffled, as a polars frame."""
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(dataset.with_format("arrow")[:]))
    names = {column: getattr(kind, "names", None) for column, kind in dataset.features.items()}
    return name_classes(frame, {column: {"names": listed} for column, listed in names.items()})


def features_of_file(path: Path, content: io.BytesIO, arrow: bool) -> Features:
    """Find what a saved dataset says of its columns; empty if it says nothing.

    A parquet file has it inside, an arrow file in the `dataset_info.json` beside it.
    """
    import polars as pl

    if arrow:
        beside = path.parent / "dataset_info.json"
        info = beside.read_text(encoding="utf-8") if beside.is_file() else "{}"
        return _features(info)
    content.seek(0)
    metadata = pl.read_parquet_metadata(content)
    return _features(metadata.get("huggingface", "{}"), "info")


def name_classes(frame: Any, features: Features) -> Any:
    """Put names for the numbers in the columns that are labels; -1 stands for none."""
    import polars as pl

    for column in frame.columns:
        kind = features.get(column)
        names = kind.get("names") if isinstance(kind, Mapping) else None
        if isinstance(names, list) and frame[column].dtype.is_integer():
            numbers = frame[column]
            known = numbers.is_between(0, len(names) - 1)
            named = pl.Series(names, dtype=pl.String).gather(numbers.set(~known, None))
            frame = frame.with_columns(named.alias(column))
    return frame


def _features(info: str, within: str | None = None) -> Features:
    try:
        parsed = json.loads(info)
        features = (parsed[within] if within else parsed)["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}
