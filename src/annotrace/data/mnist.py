"""MNIST, and other data sets in idx files (Fashion-MNIST)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.data.labelled import LabelledSet
from annotrace.errors import InputError
from annotrace.labels.files import read_bytes

FILES = (
    *("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    *("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
PUBLISHED = "https://ossci-datasets.s3.amazonaws.com/mnist/ (first at yann.lecun.com/exdb/mnist)"


def load_mnist(folder: str | Path) -> tuple[LabelledSet, LabelledSet]:
    """Load the training and the test set from the four idx files, gzipped or not.

    Parameters
    ----------
    folder : str or Path
        The folder with the files, or with `MNIST/raw`.

    Returns
    -------
    train, test : LabelledSet
        X is uint8 of shape (n, 28, 28).
    """
    found = {name: path for name in FILES if (path := _find(Path(folder), name))}
    if missing := [name for name in FILES if name not in found]:
        raise InputError(
            f"{folder} lacks {', '.join(missing)} (.gz or not). MNIST is four files, "
            f"{', '.join(FILES)}; download them from {PUBLISHED} into the folder."
        )
    images, labels, test_images, test_labels = found.values()
    return _load_part(images, labels), _load_part(test_images, test_labels)


def _find(folder: Path, name: str) -> Path | None:
    for place in (folder, folder / "MNIST" / "raw"):
        for path in (place / name, place / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def _load_part(images: Path, labels: Path) -> LabelledSet:
    X, y = read_idx(images, 3), read_idx(labels, 1)
    if len(X) != len(y):
        raise InputError(f"{images} has {len(X)} images, but {labels} has {len(y)} labels.")
    if len(y) and y.max() > 9:
        raise InputError(f"{labels}: label {y.max()} at index {y.argmax()}; expected 0 to 9.")
    return LabelledSet(X, y.astype(np.int32), np.arange(10))


def read_idx(path: Path, ndim: int) -> NDArray[Any]:
    """Read an idx file of bytes with `ndim` dimensions, gzipped or not."""
    content = read_bytes(path)
    magic = int.from_bytes(content[:4], "big")
    expected = 0x0800 + ndim
    if magic != expected:
        raise InputError(
            f"{path}: magic number {magic}, expected {expected} (bytes in {ndim} dimensions). "
            "This is another file, or it is damaged; download it again."
        )
    start = 4 + 4 * ndim
    shape = [int.from_bytes(content[k : k + 4], "big") for k in range(4, start, 4)]
    if len(content) != start + math.prod(shape):
        raise InputError(
            f"{path}: {len(content)} bytes, but the header specifies {start + math.prod(shape)}. "
            "The file is truncated or damaged; download it again."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()
