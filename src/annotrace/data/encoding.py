"""Encoding of texts and images as features, once: in batches, cached, and resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from annotrace.data.encoded import EncodedSource
from annotrace.data.encoders import Encoder, FunctionEncoder, PretrainedEncoder, load_encoder
from annotrace.data.encoding_cache import Cache, EncodingCache, Rows, cache_folder
from annotrace.data.image_source import ImageSource, warn_of_skipped
from annotrace.data.raw_items import ImageItems, RawItems, as_raw_items
from annotrace.errors import InputError, count
from annotrace.parameters import Count, Natural, check_value
from annotrace.progress import show_progress


def encode(
    items: Any,
    encoder: str | PathLike[str] | Encoder,
    *,
    names: ArrayLike | None = None,
    batch_size: int = 32,
    device: str | torch.device = "auto",
    cache: Cache = None,
    cache_key: str | None = None,
    n_workers: int | None = None,
    verbose: bool = False,
) -> EncodedSource:
    """Encode texts, pairs of texts or images as features.

    Distinct items are encoded once. With a cache, an item is encoded only if its content is new to
    the model, and an encoding that was interrupted continues where it stopped.

    Parameters
    ----------
    items : sequence of texts, sequence of pairs of texts, frame, ImageSource, path or array
        Texts are a list, an array, or a column of pandas, polars or pyarrow; a frame has one or two
        columns of texts and may have an item column. Images are an `ImageFolder` or `ImageShards`,
        the path of one, or an array of uint8 of shape (n_images, height, width[, 3]).
    encoder : str, Path or Encoder
        The folder of a model, the name of one on the Hugging Face hub, or a function from a list of
        texts, of pairs or of Pillow images to an array of shape (n, n_features). See `Encoder`.
    names : array-like of shape (n_items,), optional
        Names of the items, if they have none of their own.
    batch_size : int
        Items that the model encodes at a time; texts of similar length are taken together.
    device : str or torch.device
        "auto" is a GPU if there is one.
    cache : str, Path, None or False
        The folder of the cache; None is that of the user, and False is no cache.
    cache_key : str, optional
        What identifies a function and all that it depends on. Without it, and without an attribute
        `fingerprint`, the results of a function are not cached.
    n_workers : int, optional
        Processes that decode images, 0 for none; by default as many as the `ImageFolder` says: one
        per core, and none for less than 32 MiB of files. A function gets whole images, for which
        the default is none: to send the pixels of a photo takes as long as to decode it.
    verbose : bool
        Show a progress bar.

    Returns
    -------
    EncodedSource
        Features in float32, in the order of the items, with the record of the encoder. Its
        `skipped` names the images that were left out (``on_error="skip"``).

    Examples
    --------
    >>> def count_letters(texts):
    ...     return [[text.count(letter) for letter in "ab"] for text in texts]
    >>> encode(["abba", "bob"], count_letters).X.tolist()
    [[2.0, 2.0], [0.0, 2.0]]
    """
    check_value("batch_size", batch_size, Count)
    check_value("n_workers", n_workers, Natural | None)
    raw = as_raw_items(items, names)
    if len(raw) == 0:
        raise InputError("Expected at least one item to encode, but got none.")
    found = load_encoder(
        encoder, raw.kind, device=device, cache=cache, cache_key=cache_key, verbose=verbose
    )
    work = _Work(raw, found, _open_cache(found, cache))
    try:
        work.run(batch_size, n_workers, verbose)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(work.how_to_resume()) from None
    return work.result()


class _Work:
    """The distinct items to encode, and the rows that are there so far."""

    def __init__(
        self,
        raw: RawItems,
        encoder: PretrainedEncoder | FunctionEncoder,
        cache: EncodingCache | None,
    ) -> None:
        self.raw, self.encoder, self.cache = raw, encoder, cache
        places: dict[bytes, int] = {}
        self.inverse = np.array([places.setdefault(key, len(places)) for key in raw.digests()])
        self.keys = list(places)
        self.first = np.unique(self.inverse, return_index=True)[1]
        self.rows: Rows = np.empty((len(self.keys), 0), np.float32)
        self.n_computed = 0

    def run(self, batch_size: int, n_workers: int | None, verbose: bool) -> None:
        """Read what is cached, and compute the rest."""
        left = self._read_cache()
        if len(left) == 0:
            return
        # The longest first: if memory does not suffice, this shows at once.
        left = left[np.argsort(-self.raw.lengths()[self.first[left]], kind="stable")]
        items = self.raw.iterate(self.first[left].tolist(), self.encoder.min_side, n_workers)
        with closing(items), show_progress(verbose, len(left), "encoded") as progress:
            for first in items:
                taken: list[int] = []
                batch = _note_positions(chain([first], islice(items, batch_size - 1)), taken)
                output = self.encoder(batch)
                self._store(self.inverse[taken], output)
                progress.update(self.n_computed)

    def result(self) -> EncodedSource:
        """Return the rows of all items but those that were skipped."""
        rows = self.rows if len(self.keys) == len(self.inverse) else self.rows[self.inverse]
        record, names, n_computed = self.encoder.record, self.raw.names, self.n_computed
        if not isinstance(self.raw, ImageItems) or not self.raw.broken:
            return EncodedSource(rows, record, names, n_computed=n_computed)
        is_kept = ~np.isin(self.inverse, self.inverse[list(self.raw.broken)])
        assert names is not None
        assert isinstance(self.raw.source, ImageSource)
        warn_of_skipped(names[~is_kept], self.raw.broken, self.raw.source)
        source = EncodedSource(rows[is_kept], record, names[is_kept], n_computed=n_computed)
        source.skipped = names[~is_kept]
        return source

    def _read_cache(self) -> NDArray[np.int64]:
        """Read the rows that are cached; return the places of the others."""
        if self.cache is None:
            return np.arange(len(self.keys))
        cached, rows = self.cache.read(self.keys)
        if len(cached) == len(self.keys):
            self.rows = rows
        elif len(cached):
            self.rows = np.empty((len(self.keys), rows.shape[1]), np.float32)
            self.rows[cached] = rows
        return np.setdiff1d(np.arange(len(self.keys)), cached)

    def _store(self, places: NDArray[np.int64], output: Any) -> None:
        rows = self._check(output, places)
        if self.rows.shape[1] == 0:
            self.rows = np.empty((len(self.keys), rows.shape[1]), np.float32)
        self.rows[places] = rows
        if self.cache is not None:
            self.cache.write([self.keys[place] for place in places], rows)
        self.n_computed += len(places)

    def _check(self, output: Any, places: NDArray[np.int64]) -> Rows:
        """Return the output for a batch as float32, shape (n_places, n_features)."""
        rows, known = _as_array(output), self.rows.shape[1]
        is_matrix = rows.dtype.kind in "biuf" and rows.ndim == 2 and 0 not in rows.shape
        if not is_matrix or rows.shape != (len(places), known or rows.shape[1]):
            raise InputError(
                f"Expected the encoder {self.encoder.record.name} to return numbers of shape "
                f"({len(places)}, {known or 'n_features'}), but got {rows.dtype} of shape "
                f"{rows.shape}. If it is a function that has changed, pass another cache_key=."
            )
        with np.errstate(over="ignore"):
            converted: Rows = rows.astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(converted).all(axis=1))
        if len(wrong):
            raise self._not_finite(int(self.first[places[wrong[0]]]))
        return converted

    def _not_finite(self, position: int) -> InputError:
        name = "" if self.raw.names is None else f" ({str(self.raw.names[position])!r})"
        return InputError(
            f"The encoder {self.encoder.record.name} returned values that are NaN, infinite or too "
            f"large for item {position}{name}. Remove the item, or choose another encoder."
        )

    def how_to_resume(self) -> str:
        """Describe what an interrupt leaves."""
        done = f"Interrupted after encoding {count(self.n_computed, 'item')}."
        if self.cache is None:
            return f"{done} Nothing is kept, as there is no cache."
        folder = self.cache.store.path.parent
        return f"{done} They are kept in {folder}; the same command or call resumes from there."


def _open_cache(encoder: PretrainedEncoder | FunctionEncoder, cache: Cache) -> EncodingCache | None:
    folder = cache_folder(cache)
    if folder is None:
        return None
    if encoder.record.fingerprint:
        return EncodingCache(folder, encoder.record.fingerprint)
    if cache is not None:
        raise InputError(
            f"To cache the results of the function {encoder.record.name}, name what identifies it "
            "with cache_key=. Change it whenever the function changes."
        )
    return None


def _note_positions(items: Iterable[tuple[int, Any]], positions: list[int]) -> Iterator[Any]:
    """Yield items, and append their positions to a list."""
    for position, item in items:
        positions.append(position)
        yield item


def _as_array(output: Any) -> NDArray[Any]:
    if isinstance(output, torch.Tensor):
        output = output.detach().cpu()
        output = output.float() if output.is_floating_point() else output
    try:
        return np.asarray(output)
    except ValueError:  # Rows of unequal length.
        return np.empty(0, object)
