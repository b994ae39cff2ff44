"""Feature files: npy, npz with X and items, parquet with an item column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from annotrace.data.source import ArraySource, source_from_frame
from annotrace.errors import InputError
from annotrace.labels.files import NPY, PARQUET, ZIP, check_file, load_arrays, open_file
from annotrace.labels.parquet import read_frame


def read_features(path: str | Path, *, item: str | None = None) -> ArraySource:
    """Read the features of items; the format is detected by content.

    Parameters
    ----------
    path : str or Path
        An npy file: one array, rows by position. An npz file: `X`, and optionally `items`, the
        name of each row. A parquet file: an item column, detected by its name (item, image, id,
        ...), and columns of numbers or of lists of numbers.
    item : str, optional
        The item column of a parquet file, if it has a column of this name.

    Returns
    -------
    ArraySource
        In the dtype of the file.
    """
    path = check_file(path)
    with open_file(path) as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith((NPY, ZIP)):
            return _source_from_arrays(load_arrays(file, str(path)), str(path))
        if start.startswith(PARQUET):
            frame = read_frame(file, path, "parquet")
            return source_from_frame(frame, item=item, source=str(path))
    raise InputError(
        f"{path} is not an npy, npz or parquet file. Save features with "
        "np.savez(path, X=features, items=names)."
    )


def _source_from_arrays(arrays: dict[str, NDArray[Any]], source: str) -> ArraySource:
    if set(arrays) == {""}:
        return ArraySource(arrays[""], source=source)
    if "X" not in arrays:
        raise InputError(
            f"{source} has no array `X`; it has {', '.join(arrays) or 'none'}. Save features with "
            "np.savez(path, X=features, items=names)."
        )
    return ArraySource(arrays["X"], arrays.get("items"), source=source)
