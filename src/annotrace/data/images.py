"""Folders of images, decoded batch by batch."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.data.decoding import open_within, read_image
from annotrace.errors import InputError, count, first_few
from annotrace.labels.vocabulary import Names, as_names, as_text, check_names, look_up
from annotrace.limits import MAX_PIXELS

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp")


class ImageFolder:
    """The png, jpg and bmp images in and below a folder, sorted by path.

    Images are decoded on demand, rotated according to EXIF, and resized (bilinear) to one size, as
    uint8. Images with 16 bits are scaled to 8. Nothing outside the folder is read: a link to a file
    outside it is an error, and a link to a folder outside it is skipped with a warning. A link to a
    folder inside it is skipped too, since its images are found in that folder.

    Parameters
    ----------
    path : str or Path
    size : (height, width)
    color : bool
        Three channels, or one (greyscale).
    follow_links : bool
        Whether to follow links that lead out of the folder.
    max_pixels : int
        Maximum number of pixels of an image. JPEG images may have more if they are resized to less
        than 1/2, 1/4 or 1/8, at which they are then decoded; progressive ones may not.

    Attributes
    ----------
    paths : list of Path
    items : ndarray of shape (n_items,)
        Path relative to the folder, with "/"; `matching` can choose other names.
    shape : (height, width, 3) or (height, width)
    """

    def __init__(
        self,
        path: str | Path,
        size: tuple[int, int] = (64, 64),
        color: bool = True,
        *,
        follow_links: bool = False,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        self.path, self.color = Path(path), color
        self.follow_links, self.max_pixels = follow_links, max_pixels
        if not self.path.is_dir():
            raise InputError(f"{path}: no such folder.")
        self.paths = sorted(_find_images(self.path, follow_links))
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
        mode, size = "RGB" if self.color else "L", (self.shape[1], self.shape[0])
        for place, position in enumerate(positions):
            image = self.decode(int(position), min_side=max(size))
            if image.mode != mode:
                image = image.convert(mode)
            batch[place] = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
        return batch

    def decode(self, position: int, min_side: int | None = None) -> Any:
        """Decode one image as a Pillow image; see `annotrace.data.decoding.read_image`."""
        root = None if self.follow_links else self.path
        return read_image(
            self.paths[position], root=root, min_side=min_side, max_pixels=self.max_pixels
        )

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


def _find_images(root: Path, follow_links: bool) -> Iterator[Path]:
    """Yield the visible images in and below a folder."""
    inside, entered = root.resolve(), set[Path]()

    def is_entered(folder: Path) -> bool:
        if folder.name.startswith("."):
            return False
        if not folder.is_symlink():
            return True
        target = folder.resolve()
        if target.is_relative_to(inside) or target in entered:
            return False
        if not follow_links:
            warnings.warn(
                f"{folder} is a link that leads out of {root}, and is skipped. Follow links with "
                "follow_links=True (--follow-links).",
                stacklevel=4,
            )
            return False
        entered.add(target)
        return True

    for name, subfolders, files in os.walk(root, followlinks=follow_links):
        kept = list(filter(is_entered, map(Path(name).joinpath, sorted(subfolders))))
        subfolders[:] = [folder.name for folder in kept]
        for file in map(Path(name).joinpath, files):
            if not file.name.startswith(".") and file.suffix.lower() in SUFFIXES and file.is_file():
                if file.is_symlink() and not follow_links:
                    open_within(file, root).close()
                yield file
