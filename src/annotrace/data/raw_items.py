"""Texts, pairs of texts and images as they are, before they are encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.data.decoding import Rendering
from annotrace.data.decoding_pool import decode_ahead
from annotrace.data.image_source import ImageSource
from annotrace.data.shards import open_images
from annotrace.data.source import ArraySource
from annotrace.data.texts import TextSource
from annotrace.errors import InputError
from annotrace.labels.columns import find_column
from annotrace.labels.frames import is_frame
from annotrace.labels.usual_names import USUAL_NAMES
from annotrace.labels.vocabulary import Names, check_names

Kind: TypeAlias = Literal["text", "pairs", "images"]
Text: TypeAlias = str | tuple[str, str]

_EXPECTED = (
    "Expected texts, pairs of texts, an ImageFolder or ImageShards, or an array of images in uint8 "
    "of shape (n, height, width[, 3])"
)


class RawItems(Protocol):
    """Items to encode.

    Attributes
    ----------
    kind : "text", "pairs" or "images"
    names : ndarray of shape (n_items,) or None
    """

    kind: Kind
    names: Names | None

    def __len__(self) -> int: ...

    def digests(self) -> list[bytes]:
        """Return the sha256 of the content of each item."""

    def lengths(self) -> NDArray[np.int64]:
        """Return a measure of the work that each item takes, shape (n_items,)."""

    def iterate(
        self, positions: Sequence[int], min_side: int | None, n_workers: int | None
    ) -> Generator[tuple[int, Any], None, None]:
        """Iterate over some items with their positions; images that are skipped are left out.

        Images are decoded for a model that resizes them to `min_side`.
        """


class TextItems:
    """Texts, or pairs of texts."""

    def __init__(self, texts: Sequence[Text], names: Names | None) -> None:
        self.texts, self.names = texts, names
        is_pair = len(texts) > 0 and isinstance(texts[0], tuple)
        self.kind: Kind = "pairs" if is_pair else "text"

    def __len__(self) -> int:
        return len(self.texts)

    def digests(self) -> list[bytes]:
        """Return the sha256 of each text, or of the lengths and texts of each pair."""
        return [_digest_text(text) for text in self.texts]

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of characters of each."""
        return np.array([len(t) if isinstance(t, str) else sum(map(len, t)) for t in self.texts])

    def iterate(
        self, positions: Sequence[int], min_side: int | None, n_workers: int | None
    ) -> Generator[tuple[int, Any], None, None]:
        """Iterate over some texts."""
        return ((position, self.texts[position]) for position in positions)


class ImageItems:
    """Images of a folder, of tar files, or of an array (n_images, height, width[, 3])."""

    kind: Kind = "images"

    def __init__(self, source: ImageSource | ArraySource, names: Names | None) -> None:
        self.source, self.names = source, names
        self.broken: dict[int, InputError] = {}

    def __len__(self) -> int:
        return len(self.source)

    def digests(self) -> list[bytes]:
        """Return the sha256 of each file, or of the shape and pixels of each array."""
        if isinstance(self.source, ArraySource):
            return [_digest_array(image) for image in self.source.X]
        with ThreadPoolExecutor() as threads:
            return list(threads.map(self._digest_file, range(len(self))))

    def lengths(self) -> NDArray[np.int64]:
        """Return ones: models resize images."""
        return np.ones(len(self), np.int64)

    def iterate(
        self, positions: Sequence[int], min_side: int | None, n_workers: int | None
    ) -> Generator[tuple[int, Any], None, None]:
        """Iterate over some images in mode RGB, decoded ahead by `n_workers` processes."""
        source = self.source
        if isinstance(source, ArraySource):
            from PIL import Image

            yield from ((at, Image.fromarray(source.X[at]).convert("RGB")) for at in positions)
            return
        n_workers = source.n_workers if n_workers is None else n_workers
        rendering = Rendering("RGB", None, min_side, source.max_pixels)
        images = decode_ahead([source.files[at] for at in positions], rendering, n_workers)
        with closing(images):
            for position, image in zip(positions, images, strict=True):
                if isinstance(image, InputError):
                    source.note_broken(position, image, self.broken)
                else:
                    yield position, image

    def _digest_file(self, position: int) -> bytes:
        assert isinstance(self.source, ImageSource)
        file = self.source.files[position]
        try:
            return file.digest()
        except InputError as error:
            if self.source.on_error == "raise":
                raise self.source.with_remedy(error) from None
            return hashlib.sha256(str(file).encode(errors="surrogatepass")).digest()


def as_raw_items(items: Any, names: Any = None) -> RawItems:
    """Recognise what a user passes to `encode`; see there."""
    if isinstance(items, str | PathLike):
        items = open_images(Path(items))
    if isinstance(items, ImageSource):
        return ImageItems(items, items.items if names is None else _named(names, len(items)))
    if isinstance(items, TextSource):
        names = items.items if names is None else names
        items = items.texts[:, 0] if items.shape == (1,) else list(map(tuple, items.texts))
    if isinstance(items, ArraySource):
        items, names = items.X, items.items if names is None else names
    if is_frame(items):
        items, names = _split_frame(items, names)
    if isinstance(items, np.ndarray) and items.dtype.kind not in "OUT":
        return ImageItems(_check_images(items), _named(names, len(items)))
    texts = _check_texts(items)
    return TextItems(texts, _named(names, len(texts)))


def _named(names: Any, size: int) -> Names | None:
    return None if names is None else check_names(names, size, "`names`")


def _check_images(array: NDArray[Any]) -> ArraySource:
    if array.dtype != np.uint8 or array.ndim not in (3, 4) or array.shape[3:] not in ((), (3,)):
        raise InputError(f"{_EXPECTED}, but got {array.dtype} of shape {array.shape}.")
    return ArraySource(array, source="the images")


def _check_texts(items: Any) -> list[Text]:
    """Return a column of any library, or a sequence, as a list of texts or of pairs."""
    listed = _as_list(items)
    is_pair = bool(listed) and not isinstance(listed[0], str)
    texts = [_as_pair(item) if is_pair else _as_text(item) for item in listed]
    for row, text in enumerate(texts):
        if text is None:
            raise InputError(
                f"{_EXPECTED}, but row index {row} is {str(listed[row])[:60]!r} "
                f"({type(listed[row]).__name__}){' among pairs' if is_pair and row else ''}."
            )
    return texts  # type: ignore[return-value]


def _as_text(item: Any) -> str | None:
    return str(item) if isinstance(item, str) else None


def _as_pair(item: Any) -> tuple[str, str] | None:
    if not isinstance(item, tuple | list | np.ndarray) or len(item) != 2:
        return None
    one, other = map(_as_text, item)
    return None if one is None or other is None else (one, other)


def _as_list(items: Any) -> list[Any]:
    if hasattr(items, "to_pylist"):  # pyarrow, whose elements are not Python's
        return list(items.to_pylist())
    if isinstance(items, dict) or not isinstance(items, Iterable):
        raise InputError(f"{_EXPECTED}, but got {type(items).__name__}.")
    return list(items)


def _split_frame(frame: Any, names: Any) -> tuple[list[Any], Any]:
    """Return the texts or pairs of a frame, and the names in its item column if it has one."""
    import narwhals as nw

    known = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        raise InputError(f"{_EXPECTED}, but got {type(frame).__name__}; collect or select texts.")
    columns = list(known.columns)
    if names is None:
        # A question may be an item or a text; in a frame of texts it is a text.
        others = [name for name in columns if str(name).lower() not in USUAL_NAMES["text"]]
        item = find_column(others, "item", "the frame")
        if item is not None:
            columns.remove(item)
            names = known.get_column(item).to_list()
    if len(columns) not in (1, 2):
        raise InputError(
            f"Expected a frame with one or two columns of texts beside the item column, but got "
            f"{known.columns}. Select the columns."
        )
    texts = [known.get_column(name).to_list() for name in columns]
    return texts[0] if len(texts) == 1 else list(zip(*texts, strict=True)), names


def _digest_array(image: NDArray[Any]) -> bytes:
    return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).digest()


def _digest_text(text: Text) -> bytes:
    parts = [part.encode(errors="surrogatepass") for part in _parts(text)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def _parts(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text
