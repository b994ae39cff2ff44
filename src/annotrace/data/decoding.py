"""Decoding of image files that are not trusted.

Only regular files are opened, and only by the decoders of PNG, JPEG and BMP: Pillow knows some
forty formats, of which one runs Ghostscript. The size is checked in the header, before pixels take
memory.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import IO, Any

from annotrace.errors import InputError
from annotrace.limits import MAX_PIXELS
from annotrace.storage import open_regular
from annotrace.threads import GLOBAL_STATE

# What `MAX_PIXELS` counts with.
_BYTES_PER_PIXEL = 8
# Metadata of small images.
_METADATA_BYTES = 2**20


def read_image(
    path: Path,
    *,
    root: Path | None = None,
    min_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Any:
    """Decode an image upright (according to EXIF), with 8 bits per channel.

    Parameters
    ----------
    path : Path
    root : Path, optional
        The folder that must contain the file, after links are resolved.
    min_side : int, optional
        A JPEG image is decoded at 1/2, 1/4 or 1/8 of its size if its sides stay twice this long.
        By default it is decoded as a whole.
    max_pixels : int
        An image that would be decoded with more pixels is an error.

    Returns
    -------
    PIL.Image.Image
        In mode "L" or "RGB".
    """
    with open_within(path, root) as file, GLOBAL_STATE, warnings.catch_warnings():
        # Damaged metadata do not matter, and bombs are refused here. The filters are those of all
        # threads, so that one decodes at a time.
        warnings.filterwarnings("ignore", module="PIL")
        try:
            return _decode(file, path, min_side, max_pixels)
        except InputError:
            raise
        except Exception as error:  # Decoders raise errors of many types.
            reason = str(error) or type(error).__name__
            raise InputError(
                f"{path}: the image cannot be read ({reason}). Replace or remove it."
            ) from None


def open_within(path: Path, root: Path | None) -> IO[bytes]:
    """Open a regular file, which must be in the folder `root` after links are resolved."""
    target = Path(os.path.realpath(path))
    if root is not None and not target.is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"{path} is a link that leads out of {root}. Remove it, or follow links with "
            "follow_links=True (--follow-links)."
        )
    return open_regular(target, InputError)


def _decode(file: IO[bytes], path: Path, min_side: int | None, max_pixels: int) -> Any:
    from PIL import ImageOps

    image = _open_header(file)
    width, height = image.size
    if min_side is not None:
        # Twice the side: resizing then gives nearly what it gives after decoding the whole.
        image.draft(None, (2 * min_side, 2 * min_side))
    decoded = image.size if _is_single_scan(file, image) else (width, height)
    n_bytes = os.fstat(file.fileno()).st_size
    if (
        decoded[0] * decoded[1] > max_pixels
        or n_bytes > _BYTES_PER_PIXEL * max_pixels + _METADATA_BYTES
    ):
        raise InputError(
            f"{path} has {width:,} x {height:,} pixels in {n_bytes:,} bytes; the limit is "
            f"{max_pixels:,} pixels. Make the image smaller, or raise the limit with max_pixels= "
            "(--max-pixels)."
        )
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I"):
        # Pillow would clip 16 bits to 255.
        image = image.point(lambda level: level * (1 / 256))
    if image.mode not in ("L", "RGB"):
        image = image.convert("L" if image.getbands()[0] in "1LI" else "RGB")
    image.info.clear()  # A report must not publish comments and the like.
    return image


def _open_header(file: IO[bytes]) -> Any:
    from PIL.BmpImagePlugin import BmpImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile

    # Image.open would also try other formats, and refuse large JPEG images.
    formats: dict[bytes, Any] = {
        b"\x89PNG\r\n\x1a\n": PngImageFile,
        b"\xff\xd8\xff": JpegImageFile,
        b"BM": BmpImageFile,
    }
    start = file.read(8)
    file.seek(0)
    for signature, read in formats.items():
        if start.startswith(signature):
            return read(file)
    raise ValueError("it is not PNG, JPEG or BMP")


def _is_single_scan(file: IO[bytes], image: Any) -> bool:
    """Whether the first scan of a JPEG image, whose header was just read, has all its colours.

    Otherwise, as in progressive images, the decoder keeps the whole image in memory.
    """
    if image.format != "JPEG" or image.info.get("progressive") or image.layers not in (1, 3):
        return False
    header = b"\xff\xda\x00" + bytes([6 + 2 * image.layers, image.layers])
    file.seek(-(len(header) + 3 + 2 * image.layers), os.SEEK_CUR)
    return file.read(len(header)) == header
