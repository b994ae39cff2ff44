"""Frames come out of the library that they went in by: pandas, polars, pyarrow, ..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

POLARS = "polars"


def library_of(*given: Any) -> str:
    """Name the library of the first frame or series among some values; polars if there is none."""
    for value in given:
        if isinstance(value, np.ndarray | Mapping | Sequence):
            continue
        import narwhals as nw

        known = nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)
        if isinstance(known, nw.DataFrame | nw.Series):
            return str(known.implementation.value)
    return POLARS


def converted(frame: Any, library: str) -> Any:
    """Give a polars frame as one of another library."""
    if library == POLARS:
        return frame
    import narwhals as nw

    backend: Any = library
    # Of a column without a value its type would be guessed.
    schema = None if len(frame) else nw.from_native(frame).schema
    return nw.from_dict(frame.to_dict(as_series=False), schema, backend=backend).to_native()
