"""Folders of images, decoded batch by batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError, count, first_few
from annotrace.labels.vocabulary import Names, as_names, as_text, check_names, look_up

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp")


class ImageFolder:
    """The png, jpg and bmp images in and below a folder, sorted by path.

    Images are decoded on demand, rotated according to EXIF, and resized (bilinear) to one size, as
    uint8. Images with 16 bits are scaled to 8.

    Parameters
    ----------
    path : str or Path
    size : (height, width)
    color : bool
        Three channels, or one (greyscale).

    Attributes
    ----------
    paths : list of Path
    items : ndarray of shape (n_items,)
        Path relative to the folder, with "/"; `matching` can choose other names.
    shape : (height, width, 3) or (height, width)
    """

    def __init__(
        self, path: str | Path, size: tuple[int, int] = (64, 64), color: bool = True
    ) -> None:
        self.path, self.color = Path(path), color
        if not self.path.is_dir():
            raise InputError(f"{path}: no such folder.")
        self.paths = sorted(entry for entry in self.path.rglob("*") if _is_image(entry, self.path))
        if not self.paths:
            raise InputError(f"{path} and its subfolders have no images ({', '.join(SUFFIXES)}).")
        self.shape: tuple[int, ...] = (*size, 3) if color else tuple(size)
        self.items: Names = as_names([self._relative(file) for file in self.paths])

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"ImageFolder({str(self.path)!r}, {len(self):,} images of shape {self.shape})"

    def load(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Decode some images, shape (n_positions, *shape), uint8."""
        from PIL import Image

        batch = np.empty((len(positions), *self.shape), np.uint8)
        for place, position in enumerate(positions):
            image = read_image(self.paths[position]).convert("RGB" if self.color else "L")
            size = (self.shape[1], self.shape[0])
            batch[place] = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
        return batch

    def matching(self, names: ArrayLike | Iterable[Any]) -> ImageFolder:
        """Name the images like the labels do: by relative path, file name, or stem.

        Parameters
        ----------
        names : array-like of shape (n,)
            The item names of the labels.

        Returns
        -------
        ImageFolder
            The same images, with the names that match most items.
        """
        wanted = as_names(names)
        schemes: list[Callable[[Path], str]] = [
            self._relative,
            lambda file: file.name,
            lambda file: file.stem,
        ]
        named = [as_names([scheme(file) for file in self.paths]) for scheme in schemes]
        matched = [int(np.sum(look_up(wanted, candidates) >= 0)) for candidates in named]
        if max(matched) == 0:
            raise InputError(
                f"None of {count(len(wanted), 'item')} ({first_few(as_text(wanted))}) is the name "
                f"of an image in {self.path} ({first_few(self.items)}). Name items by relative "
                "path, file name, or file name without suffix."
            )
        renamed = copy.copy(self)
        best = named[int(np.argmax(matched))]
        renamed.items = check_names(best, len(self), f"the images of {self.path}")
        return renamed

    def _relative(self, file: Path) -> str:
        return file.relative_to(self.path).as_posix()


def _is_image(entry: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in entry.relative_to(folder).parts)
    return entry.suffix.lower() in SUFFIXES and not hidden and entry.is_file()


def read_image(path: Path) -> Any:
    """Decode an image with Pillow, rotated according to EXIF and scaled from 16 bits to 8."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as stored:
            image = ImageOps.exif_transpose(stored)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(
            f"{path}: the image cannot be read ({error}). Replace or remove it."
        ) from None
    if image.mode.startswith("I"):
        # Pillow would clip 16 bits to 255.
        image = Image.fromarray((np.asarray(image) // 256).astype(np.uint8))
    return image
