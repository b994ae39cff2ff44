"""Writing of files: complete or not at all."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.atomic import atomic_write
from annotrace.errors import InputError, RunError
from annotrace.labels.frames import frame_from_table
from annotrace.progress import report_stage

if TYPE_CHECKING:
    from annotrace.labels.table import LabelTable


# Rows of a csv file that are text in memory at a time.
ROWS = 2**20


def write_table(table: LabelTable, path: str | Path, *, raw: bool = False) -> None:
    """Write the labels of a table in the long form, one row per label.

    `LabelTable.read` returns an equal table with text names, except for what this form cannot
    represent: items and annotators without labels, classes that nobody reported, an unusual order
    of annotators or classes (pass `classes=` to `LabelTable.read`), and positional items.

    Parameters
    ----------
    table : LabelTable
    path : str or Path
        Ending in .csv, .tsv, .jsonl or .parquet; each but the last may be followed by .gz.
    raw : bool
        Write text to csv and tsv as it is, instead of guarding it from spreadsheets; see
        `annotrace.labels.formulas`. `LabelTable.read` then changes text that looks guarded.
    """
    path = Path(path)
    write = _writer(path, raw)
    frame = frame_from_table(table)
    with atomic_write(path) as file:
        if path.suffix == ".gz":
            # Without name and time, equal tables give equal files.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                write(frame, packed)
        else:
            write(frame, file)


def write_csv(frame: Any, path: Path, *, raw: bool = False) -> None:
    """Write a polars frame as csv, numbers with six digits; `raw` as in `write_table`."""
    _write_frames([frame], path, raw=raw)


def _write_frames(frames: Iterable[Any], path: Path, *, raw: bool) -> None:
    """Write frames with the same columns one below the other."""
    import polars as pl
    import polars.selectors as cs

    # Rounding leaves values like 1.6917899999999996e-16; float32 prints six digits.
    short = cs.float().round_sig_figs(6).cast(pl.Float32)
    with atomic_write(path) as file:
        for place, frame in enumerate(frames):
            _write_delimited(frame.with_columns(short), file, ",", raw, header=place == 0)


def write_classes(
    path: Path,
    items: Sequence[Any] | NDArray[Any],
    classes: NDArray[Any],
    probabilities: NDArray[Any],
    labels: NDArray[Any] | None = None,
    confidence: NDArray[Any] | None = None,
    *,
    raw: bool = False,
) -> None:
    """Write the class of each item as csv: item, label, confidence, one column per class.

    Parameters
    ----------
    path : Path
    items : sequence of length n_items
    classes : ndarray of shape (n_classes,)
    probabilities : ndarray of shape (n_items, n_classes)
    labels : ndarray of shape (n_items,), optional
        The class of each item by name; the most probable class by default.
    confidence : ndarray of shape (n_items,), optional
        The confidence in the label; its probability by default.
    raw : bool
        As in `write_table`.
    """
    import polars as pl

    names = [str(name) for name in classes.tolist()]
    prefix = "class " if {"item", "label", "confidence"} & set(names) else ""

    def frame(rows: slice) -> Any:
        report_stage(f"Writing {path.name}, row", rows.start, len(probabilities))
        part = probabilities[rows]
        named = classes[part.argmax(axis=1)] if labels is None else labels[rows]
        columns = {
            "item": np.asarray(items[rows]).tolist(),
            "label": named.tolist(),
            "confidence": part.max(axis=1) if confidence is None else confidence[rows],
            **{prefix + name: part[:, place] for place, name in enumerate(names)},
        }
        return pl.DataFrame(columns)

    starts = range(0, max(len(probabilities), 1), ROWS)
    _write_frames((frame(slice(start, start + ROWS)) for start in starts), path, raw=raw)


def write_confusion(folder: Path, table: LabelTable, confusion: NDArray[Any]) -> None:
    """Write confusion.npz: the matrices, and the names of annotators and classes."""
    names = {"annotators": table.annotators.tolist(), "classes": table.classes.tolist()}
    with atomic_write(folder / "confusion.npz") as file:
        np.savez_compressed(file, confusion=confusion, **names)


def write_accuracies(folder: Path, table: LabelTable, accuracies: NDArray[Any]) -> None:
    """Write confusion.npz where matrices are too many: their diagonals, and the names."""
    names = {"annotators": table.annotators.tolist(), "classes": table.classes.tolist()}
    with atomic_write(folder / "confusion.npz") as file:
        np.savez_compressed(file, accuracies=accuracies, **names)


def check_writable(folder: Path) -> None:
    """Check that a folder, or its nearest existing parent, is writable."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, but --out must be a folder.")
    nearest = next(above for above in (folder, *folder.parents) if above.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise RunError(
            f"{folder} is not writable ({error.strerror}). Choose another --out folder."
        ) from None


def _write_delimited(
    frame: Any, file: Any, separator: str, raw: bool, *, header: bool = True
) -> None:
    from annotrace.labels.formulas import guard_frame

    guarded = frame if raw else guard_frame(frame)
    guarded.write_csv(file, separator=separator, include_header=header)


def _writer(path: Path, raw: bool) -> Callable[[Any, Any], None]:
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    writers: dict[str, Callable[[Any, Any], None]] = {
        ".csv": lambda frame, file: _write_delimited(frame, file, ",", raw),
        ".tsv": lambda frame, file: _write_delimited(frame, file, "\t", raw),
        ".jsonl": lambda frame, file: frame.write_ndjson(file),
        ".parquet": lambda frame, file: frame.write_parquet(file),
    }
    if bare.suffix not in writers or path.name.endswith(".parquet.gz"):
        raise InputError(
            f"{path}: the name must end in .csv, .tsv or .jsonl (.gz may follow), or in .parquet."
        )
    return writers[bare.suffix]
