"""The rows of `benchmarks/variants.py`: one JSON line per run."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]


class Cell(NamedTuple):
    """A variant of a set, as one seed draws it."""

    set: str
    variant: str
    seed: int


class Job(NamedTuple):
    """A run: a method on a cell."""

    cell: Cell
    method: str


def job_of(row: Row) -> Job:
    """Return what a row is the result of."""
    return Job(Cell(row["set"], row["variant"], row["seed"]), row["method"])


def new_row(job: Job, found: Row) -> Row:
    """Return the row of a run with what was found."""
    return {"experiment": "variants", **job.cell._asdict(), "method": job.method, **found}


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Read the rows of files that exist; the last row of a run replaces earlier ones."""
    rows: dict[Job, Row] = {}
    for path in paths:
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            rows |= {job_of(row): row for row in map(json.loads, lines)}
    return list(rows.values())


def pack(correct: NDArray[np.bool_]) -> str:
    """Return booleans as text, eight to a byte."""
    return base64.b64encode(np.packbits(correct).tobytes()).decode("ascii")


def unpack(text: str, size: int) -> NDArray[np.bool_]:
    """Return the booleans that `pack` packed."""
    packed = np.frombuffer(base64.b64decode(text), np.uint8)
    return np.unpackbits(packed, count=size).astype(bool)
