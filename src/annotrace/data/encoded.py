"""Features that an encoder computed, and the file that keeps them with its record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.atomic import atomic_write
from annotrace.data.encoders import EncoderRecord
from annotrace.data.source import ArraySource
from annotrace.errors import AnnotraceError, InputError
from annotrace.labels.vocabulary import plain_names
from annotrace.storage import parse_json

_MAX_RECORD = 10_000


class EncodedSource(ArraySource):
    """Features of texts or images, and the encoder that they are from.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features), float32
    encoder : EncoderRecord
    items : array-like of shape (n_items,), optional
        Names of the rows.
    n_computed : int
        The number of distinct items that were not in the cache.
    source : str
        The name of the array in messages.
    """

    def __init__(
        self,
        X: ArrayLike,
        encoder: EncoderRecord,
        items: ArrayLike | Iterable[Any] | None = None,
        *,
        n_computed: int = 0,
        source: str = "X",
    ) -> None:
        super().__init__(X, items, source=source)
        self.encoder, self.n_computed = encoder, n_computed

    def __repr__(self) -> str:
        size = f"{len(self):,} items of shape {self.shape}"
        return f"EncodedSource({size}, {self.encoder.kind} by {self.encoder.name})"

    def write(self, path: str | Path) -> None:
        """Write an npz file with `X`, `items` and `encoder`, for `read_features`.

        The same content is the same file, to the last byte.
        """
        record = json.dumps(self.encoder.to_dict(), sort_keys=True)
        arrays: dict[str, NDArray[Any]] = {"X": self.X, "encoder": np.array(record)}
        if self.items is not None:
            arrays["items"] = plain_names(self.items)
        with atomic_write(Path(path)) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]


def parse_record(array: NDArray[Any], source: str) -> EncoderRecord:
    """Parse the array `encoder` of a file of features."""
    try:
        if array.shape != () or array.dtype.kind != "U" or array.itemsize > 4 * _MAX_RECORD:
            raise InputError("It is not a short text.")
        fields = parse_json(str(array), "it")
        return EncoderRecord.from_dict(fields if isinstance(fields, dict) else {})
    except AnnotraceError as error:
        raise InputError(
            f"{source}: the array `encoder` is damaged ({error}). Encode the items again, or save "
            "X and items alone."
        ) from None
