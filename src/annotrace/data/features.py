"""Feature files: npy, npz with X and items, parquet with an item column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from annotrace.data.encoded import EncodedSource, parse_record
from annotrace.data.source import ArraySource, source_from_frame
from annotrace.errors import InputError
from annotrace.labels.files import NPY, PARQUET, ZIP, check_file, open_file, size_of
from annotrace.labels.npy import load_arrays
from annotrace.labels.parquet import read_frame
from annotrace.limits import FEATURE_LIMITS, Limits


def read_features(
    path: str | Path, *, item: str | None = None, limits: Limits = FEATURE_LIMITS
) -> ArraySource:
    """Read the features of items; the format is detected by content.

    Parameters
    ----------
    path : str or Path
        An npy file: one array, rows by position. An npz file: `X`, and optionally `items`, the
        name of each row, and `encoder`, the record that `annotrace encode` writes. A parquet file:
        an item column, detected by its name (item, image, id, ...), and columns of numbers or of
        lists of numbers.
    item : str, optional
        The item column of a parquet file, if it has a column of this name.
    limits : Limits
        The largest files that are read.

    Returns
    -------
    ArraySource
        In the dtype of the file; an `EncodedSource` if an encoder computed the features.
    """
    path = check_file(path, limits)
    with open_file(path) as file:
        start, size = file.read(8), size_of(file)
        limits.check_size(size, size, str(path))
        if start.startswith((NPY, ZIP)):
            source = _source_from_arrays(load_arrays(file, str(path), limits), str(path))
        elif start.startswith(PARQUET):
            frame = read_frame(file, path, "parquet", limits)
            source = source_from_frame(frame, item=item, source=str(path))
        else:
            raise InputError(
                f"{path} is not an npy, npz or parquet file. Save features with "
                "np.savez(path, X=features, items=names)."
            )
    if len(source) == 0:
        raise InputError(f"{path} has no rows.")
    return source


def _source_from_arrays(arrays: dict[str, NDArray[Any]], source: str) -> ArraySource:
    if set(arrays) == {""}:
        return ArraySource(arrays[""], source=source)
    if "X" not in arrays:
        raise InputError(
            f"{source} has no array `X`; it has {', '.join(arrays) or 'none'}. Save features with "
            "np.savez(path, X=features, items=names)."
        )
    if "encoder" in arrays:
        record = parse_record(arrays["encoder"], source)
        return EncodedSource(arrays["X"], record, arrays.get("items"), source=source)
    return ArraySource(arrays["X"], arrays.get("items"), source=source)
