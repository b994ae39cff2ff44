"""CIFAR-10, from its binary version."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotrace.data.labelled import LabelledSet
from annotrace.errors import InputError
from annotrace.labels.vocabulary import as_names

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
BATCHES = "cifar-10-batches-bin"
TRAIN = tuple(f"data_batch_{k}.bin" for k in range(1, 6))
TEST = "test_batch.bin"
PUBLISHED = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"

_RECORD = 1 + 3 * 32 * 32


def load_cifar10(folder: str | Path) -> tuple[LabelledSet, LabelledSet]:
    """Load the training and the test set.

    Parameters
    ----------
    folder : str or Path
        `cifar-10-batches-bin`, or its parent.

    Returns
    -------
    train, test : LabelledSet
        X is uint8 of shape (n, 32, 32, 3), in the order of the files.
    """
    folder = Path(folder)
    place = folder / BATCHES if (folder / BATCHES).is_dir() else folder
    missing = [name for name in (*TRAIN, TEST) if not (place / name).is_file()]
    if missing:
        raise InputError(
            f"{place} lacks {', '.join(missing)}. Download the binary version of CIFAR-10 "
            f"({PUBLISHED}), unpack it, and pass the folder {BATCHES} or its parent."
        )
    train = [_load_batch(place / name) for name in TRAIN]
    joined = LabelledSet(
        np.concatenate([batch.X for batch in train]),
        np.concatenate([batch.y for batch in train]),
        train[0].classes,
    )
    return joined, _load_batch(place / TEST)


def _load_batch(path: Path) -> LabelledSet:
    """Read records of a label byte and 1,024 bytes each of red, green and blue."""
    content = np.fromfile(path, np.uint8)
    if len(content) == 0 or len(content) % _RECORD:
        raise InputError(
            f"{path}: {len(content)} bytes are not a whole number of records of {_RECORD}. "
            "The file is truncated or damaged; download it again."
        )
    records = content.reshape(-1, _RECORD)
    labels = records[:, 0].astype(np.int32)
    if labels.max() >= len(CLASSES):
        raise InputError(
            f"{path}: record {labels.argmax()} has label {labels.max()}, expected 0 to 9. "
            "This is another file, or it is damaged; download it again."
        )
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return LabelledSet(
        np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels, as_names(CLASSES)
    )
