"""Files written: whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from annotrace.errors import InputError

if TYPE_CHECKING:
    from annotrace.labels.table import LabelTable

# Significant digits of the numbers in a csv file: more would claim what nobody knows.
DIGITS = 6


def write_table(table: LabelTable, path: str | Path) -> None:
    """Write the labels of a table in the long form.

    What is read back equals what was written, with every name as text, but for what a row a label
    cannot hold: items and annotators without labels, classes that nobody reported, an order of
    annotators or classes other than the usual one (give `classes=` to `LabelTable.read`), and
    that items are positions.

    Parameters
    ----------
    table : LabelTable
    path : str or Path
        Ending in .csv, .tsv, .jsonl or .parquet; each but the last may be followed by .gz.
    """
    path = Path(path)
    write = _writer(path)
    frame = table.to_frame()
    with replacing(path) as file:
        if path.suffix == ".gz":
            # Without a name and a time in it, equal tables give equal files.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                write(frame, packed)
        else:
            write(frame, file)


def write_csv(frame: Any, path: Path) -> None:
    """Write a polars frame as csv, its numbers to six digits."""
    import polars as pl
    import polars.selectors as cs

    # Rounding leaves 1.6917899999999996e-16 and the like; six digits are what float32 keeps.
    short = cs.float().round_sig_figs(DIGITS).cast(pl.Float32)
    with replacing(path) as file:
        frame.with_columns(short).write_csv(file)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` once complete, and leaves no trace if not."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}. Make it first.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _writer(path: Path) -> Callable[[Any, Any], None]:
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    writers: dict[str, Callable[[Any, Any], None]] = {
        ".csv": lambda frame, file: frame.write_csv(file),
        ".tsv": lambda frame, file: frame.write_csv(file, separator="\t"),
        ".jsonl": lambda frame, file: frame.write_ndjson(file),
        ".parquet": lambda frame, file: frame.write_parquet(file),
    }
    if bare.suffix not in writers or path.name.endswith(".parquet.gz"):
        raise InputError(
            f"{path}: the name must end in .csv, .tsv or .jsonl (.gz may follow), or in .parquet."
        )
    return writers[bare.suffix]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
