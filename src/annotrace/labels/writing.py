"""Files written: whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError, RunError

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
    from annotrace.labels.frames import frame_from_table

    path = Path(path)
    write = _writer(path)
    frame = frame_from_table(table)
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


def write_classes(
    path: Path,
    items: Sequence[Any],
    classes: NDArray[Any],
    probabilities: NDArray[Any],
    labels: NDArray[Any] | None = None,
    confidence: NDArray[Any] | None = None,
) -> None:
    """Write the class of each item as csv: item, label, confidence, one column a class.

    Parameters
    ----------
    path : Path
    items : sequence of length n_items
    classes : ndarray of shape (n_classes,)
    probabilities : ndarray of shape (n_items, n_classes)
    labels : ndarray of shape (n_items,), optional
        The class of each item by name; the likeliest, the first of several, unless given.
    confidence : ndarray of shape (n_items,), optional
        How sure to be of it; its probability unless given.
    """
    import polars as pl

    if labels is None:
        labels = classes[probabilities.argmax(axis=1)]
    names = [str(name) for name in classes.tolist()]
    prefix = "class " if {"item", "label", "confidence"} & set(names) else ""
    columns = {
        "item": list(items),
        "label": labels.tolist(),
        "confidence": probabilities.max(axis=1) if confidence is None else confidence,
        **{prefix + name: probabilities[:, place] for place, name in enumerate(names)},
    }
    write_csv(pl.DataFrame(columns), path)


def write_confusion(
    folder: Path, table: LabelTable, confusion: NDArray[Any], past: NDArray[Any] | None = None
) -> None:
    """Write confusion.npz: the matrices with the names of their axes, and counts of the past."""
    arrays: dict[str, Any] = {
        "confusion": confusion,
        "annotators": np.array(table.annotators.tolist()),
        "classes": np.array(table.classes.tolist()),
    }
    if past is not None:
        arrays["past"] = past
    with replacing(folder / "confusion.npz") as file:
        np.savez_compressed(file, **arrays)


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
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)  # A full disk does not say of what.
        raise


def check_writable(folder: Path) -> None:
    """Check that a folder, or the nearest above it that is there, can be written to."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; give --out a folder.")
    nearest = next(above for above in (folder, *folder.parents) if above.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise RunError(
            f"{folder} cannot be written to ({error.strerror}); give --out another folder."
        ) from None


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
