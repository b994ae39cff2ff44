"""Images of a folder or of tar files: named, matched with labels, and decoded."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import PurePosixPath
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.data.decoding import Rendering, read_image
from annotrace.data.decoding_pool import decode_ahead
from annotrace.data.image_files import ImageFile
from annotrace.data.source import ArraySource
from annotrace.errors import InputError, count, first_few
from annotrace.labels.vocabulary import Names, as_names, as_text, check_names, look_up
from annotrace.limits import MAX_DECODED_BYTES, MAX_PIXELS
from annotrace.parameters import Natural, check_value
from annotrace.progress import show_progress

# How labels may name an image: by path, by file name, and without the suffix or, as in webdataset,
# without anything after the first dot.
_SCHEMES: tuple[Callable[[PurePosixPath], str], ...] = (
    str,
    lambda path: path.name,
    lambda path: path.stem,
    lambda path: str(path.with_suffix("")),
    lambda path: str(path.with_name(path.name.partition(".")[0] or path.name)),
    lambda path: path.name.partition(".")[0],
)


class ImageSource:
    """Images of one size, decoded on demand; `ImageFolder` and `ImageShards` find them.

    Parameters
    ----------
    files : sequence of ImageFile
    names : sequence of str
        The path of each image, with "/".
    source : str
        Where the images are, for messages.
    size : (height, width)
    color : bool
        Three channels, or one (greyscale).
    max_pixels : int
        Maximum number of pixels of an image. JPEG images may have more if they are resized to less
        than 1/2, 1/4 or 1/8, at which they are then decoded; progressive ones may not.
    on_error : "raise" or "skip"
        What `decoded`, and so `fit` and `encode`, do about an image that cannot be read: raise an
        error that names it, or leave it out with a warning.
    n_workers : int, optional
        Processes that decode images; 0 decodes in this one. By default one per core, and none for
        less than 32 MiB of files.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The names; `matching` can choose others.
    shape : (height, width, 3) or (height, width)
    """

    def __init__(
        self,
        files: Sequence[ImageFile],
        names: Sequence[str],
        source: str,
        *,
        size: tuple[int, int] = (64, 64),
        color: bool = True,
        max_pixels: int = MAX_PIXELS,
        on_error: Literal["raise", "skip"] = "raise",
        n_workers: int | None = None,
    ) -> None:
        check_value("on_error", on_error, Literal["raise", "skip"])
        check_value("n_workers", n_workers, Natural | None)
        self.files, self.source, self.color = list(files), source, color
        self.max_pixels, self.on_error, self.n_workers = max_pixels, on_error, n_workers
        self.shape: tuple[int, ...] = (*size, 3) if color else tuple(size)
        self._paths = [PurePosixPath(name) for name in names]
        paths = as_names([str(path) for path in self._paths])
        self.items: Names = check_names(paths, len(paths), f"the images of {source}")

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        images = f"{len(self):,} images of shape {self.shape}"
        return f"{type(self).__name__}({self.source!r}, {images})"

    def load(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Decode some images as uint8, one per position; a broken one is an error."""
        batch = np.empty((len(positions), *self.shape), np.uint8)
        with closing(self._iterate(positions.tolist())) as images:
            for place, image in enumerate(images):
                if isinstance(image, InputError):
                    raise self.with_remedy(image)
                batch[place] = image
        return batch

    def decode(self, position: int, min_side: int | None = None) -> Any:
        """Decode one image as a Pillow image; see `annotrace.data.decoding.read_image`."""
        return read_image(self.files[position], min_side=min_side, max_pixels=self.max_pixels)

    def decoded(self, verbose: bool = False) -> ArraySource | ImageSource:
        """Decode all images, once.

        Parameters
        ----------
        verbose : bool
            Show a progress bar.

        Returns
        -------
        ArraySource
            Its `skipped` names the images that were left out (``on_error="skip"``). Images that
            would take more than 8 GiB are not decoded: the result is this source, with a warning.
        """
        n_bytes = len(self) * int(np.prod(self.shape))
        if n_bytes > MAX_DECODED_BYTES:
            self._warn_of_size(n_bytes)
            return self
        array, broken = np.empty((len(self), *self.shape), np.uint8), dict[int, InputError]()
        images = self._iterate(range(len(self)))
        with closing(images), show_progress(verbose, len(self), "decoded") as progress:
            for position, image in enumerate(images):
                if isinstance(image, InputError):
                    self.note_broken(position, image, broken)
                else:
                    array[position] = image
                progress.update(position + 1)
        skipped = list(broken)
        if broken:
            array = np.delete(array, skipped, axis=0)
            warn_of_skipped(self.items[skipped], broken, self)
        decoded = ArraySource(array, np.delete(self.items, skipped), source=self.source)
        decoded.skipped = self.items[skipped]
        return decoded

    def note_broken(self, position: int, error: InputError, broken: dict[int, InputError]) -> None:
        """Raise the error of an image, or add it to those that are skipped."""
        if self.on_error == "raise":
            raise self.with_remedy(error)
        broken[position] = error

    def with_remedy(self, error: InputError) -> InputError:
        """Return the error of a broken image with the option that leaves it out."""
        if self.on_error == "skip":
            return InputError(f"{error} `decoded()` leaves it out.")
        return InputError(f'{error} Or skip broken images with on_error="skip" (--skip-broken).')

    def matching(self, names: ArrayLike | Iterable[Any]) -> ImageSource:
        """Name the images like the labels do: by path, by file name, with or without suffix.

        Parameters
        ----------
        names : array-like of shape (n,)
            The item names of the labels.

        Returns
        -------
        ImageSource
            The same images, with the names that match most items.
        """
        wanted = as_names(names)
        named = [as_names([scheme(path) for path in self._paths]) for scheme in _SCHEMES]
        matched = [int(np.sum(look_up(wanted, candidates) >= 0)) for candidates in named]
        if max(matched) == 0:
            raise InputError(
                f"None of {count(len(wanted), 'item')} ({first_few(as_text(wanted))}) is the name "
                f"of an image in {self.source} ({first_few(self.items)}). Name items by relative "
                "path, file name, or file name without suffix."
            )
        renamed = copy.copy(self)
        best = named[int(np.argmax(matched))]
        renamed.items = check_names(best, len(self), f"the images of {self.source}")
        return renamed

    def _iterate(self, positions: Iterable[int]) -> Any:
        """Decode some images at the size of this source; see `decode_ahead`."""
        size = self.shape[1], self.shape[0]
        rendering = Rendering("RGB" if self.color else "L", size, max(size), self.max_pixels)
        return decode_ahead([self.files[at] for at in positions], rendering, self.n_workers)

    def _warn_of_size(self, n_bytes: int) -> None:
        message = (
            f"{len(self):,} images of shape {self.shape} take {n_bytes / 2**30:.1f} GiB, more than "
            f"{MAX_DECODED_BYTES / 2**30:.0f} GiB in memory"
        )
        if self.on_error == "skip":
            raise InputError(
                f"{message}, so that the broken ones are not known in advance: read them at a "
                "smaller size (--image-size), or encode them (--encoder)."
            )
        warnings.warn(
            f"{message}, and are decoded again whenever they are used. Read them at a smaller size "
            "(--image-size), or encode them (--encoder).",
            stacklevel=3,
        )


def warn_of_skipped(names: Names, broken: dict[int, InputError], source: ImageSource) -> None:
    """Warn of images that are skipped; raise if no image is left."""
    first = next(iter(broken.values()))
    if len(names) == len(source):
        raise InputError(f"{source.source}: no image can be read. {first}")
    verb = "is" if len(names) == 1 else "are"
    warnings.warn(
        f"{count(len(names), 'image')} of {source.source} cannot be read and {verb} skipped "
        f"({first_few(names)}). {first}",
        stacklevel=3,
    )
