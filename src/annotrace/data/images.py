"""Folders of images."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotrace.data.image_files import ImageFile
from annotrace.data.image_formats import SUFFIXES
from annotrace.data.image_source import ImageSource
from annotrace.errors import InputError
from annotrace.regular_files import open_within


class ImageFolder(ImageSource):
    """The images in and below a folder, sorted by path.

    Files with the suffixes of PNG, JPEG, BMP, GIF, WebP, TIFF, HEIC and AVIF are found; their
    content decides how they are decoded. Images are rotated according to EXIF, and resized
    (bilinear) to one size, as uint8. Of an animation or a document, the first frame or page is
    read. Images with 16 bits are scaled to 8, and what is transparent is white.

    Nothing outside the folder is read: a link to a file outside it is an error, and a link to a
    folder outside it is skipped with a warning. A link to a folder inside it is skipped too, since
    its images are found in that folder.

    Parameters
    ----------
    path : str or Path
    size : (height, width)
    color : bool
        Three channels, or one (greyscale).
    follow_links : bool
        Whether to follow links that lead out of the folder.
    **options
        `max_pixels`, `on_error` and `n_workers`, as in `ImageSource`.

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
        **options: Any,
    ) -> None:
        folder = Path(path)
        if not folder.is_dir():
            raise InputError(f"{path}: no such folder.")
        paths = sorted(_find_images(folder, follow_links))
        if not paths:
            raise InputError(f"{path} and its subfolders have no images ({', '.join(SUFFIXES)}).")
        root = None if follow_links else str(folder)
        files = [ImageFile(str(file), root) for file in paths]
        names = [file.relative_to(folder).as_posix() for file in paths]
        super().__init__(files, names, str(path), size=size, color=color, **options)
        self.paths = paths


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
