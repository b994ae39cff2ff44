"""Images in tar files (shards), as webdataset writes them; nothing is unpacked."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from annotrace.data.image_files import ImageFile
from annotrace.data.image_formats import SUFFIXES
from annotrace.data.image_source import ImageSource
from annotrace.data.images import ImageFolder
from annotrace.data.tar_index import Member, read_members
from annotrace.errors import InputError, LimitError, count
from annotrace.limits import MAX_MEMBERS
from annotrace.regular_files import open_within

_SUFFIX = ".tar"
# Compressed ones too, which are then refused.
_TAR = re.compile(r"\.(tar|tgz|tar\.(gz|bz2|xz|zst))$", re.IGNORECASE)
_RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
_MAX_SHARDS = 100_000


class ImageShards(ImageSource):
    """The images in tar files, in the order of the files and of their members.

    The headers of a tar file are read once, to find its images; each image is then read from its
    place in the file. Only regular members are images: links, devices and folders are not. A tar
    file that is compressed is an error, because its images could only be read one after the other.

    Parameters
    ----------
    path : str or Path
        A tar file; a folder, for the files in it that end in .tar; or a pattern with ranges, such
        as ``"train-{000..009}.tar"``.
    size : (height, width)
    color : bool
        Three channels, or one (greyscale).
    follow_links : bool
        Whether to follow links in the folder that lead out of it.
    **options
        `max_pixels`, `on_error` and `n_workers`, as in `ImageSource`.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The names of the members. `matching` can choose others: without folder or suffix, or the
        key of webdataset, which is the name up to the first dot.
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
        root = str(path) if Path(path).is_dir() and not follow_links else None
        found = list(itertools.islice(_find_members(find_shards(path), root), MAX_MEMBERS + 1))
        if len(found) > MAX_MEMBERS:
            raise LimitError(f"{path} has more than {MAX_MEMBERS:,} images. Divide the shards.")
        if not found:
            raise InputError(f"{path}: the tar files have no images ({', '.join(SUFFIXES)}).")
        files = [ImageFile(shard, root, *member) for shard, member in found]
        _check_unique(files)
        names = [member.name for _, member in found]
        super().__init__(files, names, str(path), size=size, color=color, **options)


def open_images(path: str | Path, **options: Any) -> ImageSource:
    """Find the images at a path: a folder of images, or tar files.

    Parameters
    ----------
    path : str or Path
        A folder of images, or a path or pattern of `ImageShards`. A folder with tar files and no
        image beside them is read as shards.
    **options
        As in `ImageFolder` and `ImageShards`.
    """
    return (ImageShards if is_shards(path) else ImageFolder)(path, **options)


def is_shards(path: str | Path) -> bool:
    """Whether a path is that of a tar file, by its suffix, a pattern, or a folder of tar files."""
    if not Path(path).is_dir():
        return _TAR.search(str(path)) is not None
    suffixes = {file.suffix.lower() for file in Path(path).iterdir()}
    return _SUFFIX in suffixes and suffixes.isdisjoint(SUFFIXES)


def find_shards(path: str | Path) -> list[Path]:
    """Return the tar files of a folder or pattern, sorted, or the one file."""
    if Path(path).is_dir():
        found = sorted(file for file in Path(path).iterdir() if file.suffix.lower() == _SUFFIX)
        if not found:
            raise InputError(f"{path} has no tar files.")
        return found
    shards = [Path(name) for name in expand_ranges(str(path))]
    missing = [shard for shard in shards if not shard.is_file()]
    if missing:
        others = f", nor {count(len(missing) - 1, 'other')} of {path}" if len(missing) > 1 else ""
        raise InputError(f"{missing[0]}: there is no such file{others}.")
    return shards


def expand_ranges(pattern: str) -> list[str]:
    """Return the names of a pattern with ranges.

    >>> expand_ranges("a-{08..10}.tar")
    ['a-08.tar', 'a-09.tar', 'a-10.tar']
    """
    parts, ranges = _RANGE.split(pattern), []
    for first, last in zip(parts[1::3], parts[2::3], strict=True):
        ranges.append([f"{n:0{len(first)}}" for n in _count_to(first, last, pattern)])
    if math.prod(map(len, ranges)) > _MAX_SHARDS:
        raise LimitError(f"{pattern} names more than {_MAX_SHARDS:,} files.")
    texts = parts[::3]
    return [
        texts[0] + "".join(number + text for number, text in zip(chosen, texts[1:], strict=True))
        for chosen in itertools.product(*ranges)
    ]


def _count_to(first: str, last: str, pattern: str) -> range:
    numbers = range(int(first), int(last) + 1)
    if not 0 < len(numbers) <= _MAX_SHARDS:
        raise InputError(
            f"{pattern}: expected a range of 1 to {_MAX_SHARDS:,} numbers, such as {{000..009}}."
        )
    return numbers


def _find_members(shards: list[Path], root: str | None) -> Iterator[tuple[str, Member]]:
    """Yield the images of tar files."""
    for shard in shards:
        with open_within(shard, None if root is None else Path(root)) as file:
            for member in read_members(file, str(shard)):
                name = PurePosixPath(member.name)
                if name.suffix.lower() in SUFFIXES and not name.name.startswith("."):
                    yield str(shard), member


def _check_unique(files: list[ImageFile]) -> None:
    seen: dict[str | None, ImageFile] = {}
    for file in files:
        if (other := seen.setdefault(file.member, file)) is not file:
            raise InputError(
                f"{file} has the name of another image, in {other.path}. Names must be unique "
                "in all shards."
            )
