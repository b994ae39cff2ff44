"""Read label files in this process, with `LabelTable.read` or with polars alone.

::

    python benchmarks/label_reading.py polars labels/*.parquet
    python benchmarks/label_reading.py annotrace labels/*.parquet

Polars' part is the yardstick: read all columns as text, and code each by its distinct names in
order of first appearance, as a cast to categories does. It checks nothing, finds no roles and sorts
nothing. Each first reads a small file, so that imports are not counted. Prints one line of JSON;
`large_tables.py --reading` runs both in turn.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from annotrace.labels.table import LabelTable


def read_with_polars(paths: list[str]) -> list[tuple[Any, list[str]]]:
    """Return the codes and the names of each column of files."""
    frame = pl.concat([_read_text(path) for path in paths])
    kinds = [pl.Categorical(pl.Categories.random()) for _ in frame.columns]
    coded = frame.select(pl.col(n).cast(k) for n, k in zip(frame.columns, kinds, strict=True))
    return [(column.to_physical().to_numpy(), _names(column)) for column in coded.iter_columns()]


def _names(column: pl.Series) -> list[str]:
    return column.unique(maintain_order=True).cast(pl.String).to_list()


def _read_text(path: str) -> pl.DataFrame:
    if path.endswith(".parquet"):
        return pl.read_parquet(path)
    return pl.read_csv(path, infer_schema=False)


READERS = {"polars": read_with_polars, "annotrace": LabelTable.read}


def _write_small_file(folder: str) -> str:
    rows = "".join(f"item{k // 2},worker{k % 2},label{k % 3}\n" for k in range(20))
    path = Path(folder, "small.csv")
    path.write_text("item,worker,label\n" + rows)
    return str(path)


def main() -> None:
    """Read the files that are named after the reader."""
    reader, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        READERS[reader]([_write_small_file(folder)])
    start, used = time.perf_counter(), time.process_time()
    found = READERS[reader](paths)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - used
    assert found is not None
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "gigabytes": gigabytes}))


if __name__ == "__main__":
    main()
