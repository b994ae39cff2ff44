"""Decoding of image files that are not trusted.

Only regular files are opened, and only by the decoders of the formats in
`annotrace.data.image_formats`. The size is checked in the header, before pixels take memory.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import IO, Any, Literal

from annotrace.data.image_files import ImageFile
from annotrace.data.image_formats import MissingDecoderError, recognise
from annotrace.errors import InputError
from annotrace.limits import MAX_PIXELS
from annotrace.threads import GLOBAL_STATE

# What `MAX_PIXELS` counts with.
_BYTES_PER_PIXEL = 8
# Metadata of small images.
_METADATA_BYTES = 2**20
# Tags of TIFF.
_BITS, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0


@dataclass(frozen=True)
class Rendering:
    """What an image becomes once it is decoded.

    All fields are plain values, so that they can be sent to another process as JSON.

    Parameters
    ----------
    mode : "RGB", "L" or None
        None is "RGB" or "L", as the image is.
    size : (width, height), optional
        The image is resized to it (bilinear).
    min_side, max_pixels : int
        As in `read_image`.
    """

    mode: Literal["RGB", "L"] | None = None
    size: tuple[int, int] | None = None
    min_side: int | None = None
    max_pixels: int = MAX_PIXELS

    @property
    def is_whole(self) -> bool:
        """Whether an image keeps its size."""
        return self.size is None and self.min_side is None


def render_image(file: ImageFile, rendering: Rendering) -> Any:
    """Decode an image and return it in the mode and size of a rendering."""
    from PIL import Image

    image = read_image(file, min_side=rendering.min_side, max_pixels=rendering.max_pixels)
    if rendering.mode is not None and image.mode != rendering.mode:
        image = image.convert(rendering.mode)
    if rendering.size is not None:
        image = image.resize(tuple(rendering.size), Image.Resampling.BILINEAR)
    return image


def read_image(
    file: ImageFile, *, min_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> Any:
    """Decode an image upright (according to EXIF), with 8 bits per channel, on white.

    Parameters
    ----------
    file : ImageFile
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
    with file.open() as opened, GLOBAL_STATE, warnings.catch_warnings():
        # Damaged metadata do not matter, and bombs are refused here. The filters are those of all
        # threads, so that one decodes at a time; several processes decode at the same time.
        warnings.filterwarnings("ignore", module="PIL")
        warnings.filterwarnings("ignore", module="pillow_heif")
        try:
            return _decode(opened, str(file), min_side, max_pixels)
        except MissingDecoderError as error:
            raise MissingDecoderError(f"{file}: {error}.") from None
        except InputError:
            raise
        except Exception as error:  # Decoders raise errors of many types.
            reason = str(error) or type(error).__name__
            raise InputError(
                f"{file}: the image cannot be read ({reason}). Replace or remove it."
            ) from None


def _decode(file: IO[bytes], name: str, min_side: int | None, max_pixels: int) -> Any:
    from PIL import ImageOps

    _check_size(file, name, max_pixels)
    format = recognise(file)
    if format.early_size is not None:
        _check_pixels(format.early_size(file), name, max_pixels)
        file.seek(0)
    image = format.open(file)
    size = decoded = image.size
    if image.format == "JPEG" and min_side is not None:
        # Twice the side: resizing then gives nearly what it gives after decoding the whole.
        image.draft(None, (2 * min_side, 2 * min_side))
        decoded = image.size if _is_single_scan(file, image) else size
    _check_pixels(decoded, name, max_pixels, size)
    ImageOps.exif_transpose(image, in_place=True)
    image = _on_white(_with_eight_bits(_undo_inversion(image)))
    image.info.clear()  # A report must not publish comments and the like.
    return image


def max_bytes(max_pixels: int) -> int:
    """Return the size of the largest file that is decoded with a limit on pixels."""
    return _BYTES_PER_PIXEL * max_pixels + _METADATA_BYTES


def _check_size(file: IO[bytes], name: str, max_pixels: int) -> None:
    n_bytes, limit = file.seek(0, os.SEEK_END), max_bytes(max_pixels)
    file.seek(0)
    if n_bytes > limit:
        raise InputError(
            f"{name} has {n_bytes:,} bytes; the limit is {limit:,}. Make the image smaller, or "
            "raise the limit with max_pixels= (--max-pixels)."
        )


def _check_pixels(
    decoded: tuple[int, int], name: str, max_pixels: int, size: tuple[int, int] | None = None
) -> None:
    """Raise if an image, which the message says is of another size, is decoded too large."""
    if decoded[0] * decoded[1] > max_pixels:
        width, height = size or decoded
        raise InputError(
            f"{name} has {width:,} x {height:,} pixels where the limit is {max_pixels:,} pixels. "
            "Make the image smaller, or raise the limit with max_pixels= (--max-pixels)."
        )


def _is_single_scan(file: IO[bytes], image: Any) -> bool:
    """Whether the first scan of a JPEG image, whose header was just read, has all its colours.

    Otherwise, as in progressive images, the decoder keeps the whole image in memory.
    """
    if image.info.get("progressive") or image.layers not in (1, 3):
        return False
    header = b"\xff\xda\x00" + bytes([6 + 2 * image.layers, image.layers])
    file.seek(-(len(header) + 3 + 2 * image.layers), os.SEEK_CUR)
    return file.read(len(header)) == header


def _undo_inversion(image: Any) -> Any:
    """Return a CMYK image with 255 for full ink.

    Programs of Adobe, which mark their files, store JPEG inverted; Pillow inverts all.
    """
    from PIL import ImageChops

    is_plain = image.format == "JPEG" and image.mode == "CMYK" and "adobe" not in image.info
    return ImageChops.invert(image) if is_plain else image


def _with_eight_bits(image: Any) -> Any:
    """Return an image with levels from 0 to 255; 16 bits are scaled, where Pillow would clip."""
    is_sixteen = image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG")
    if image.mode in ("I", "F") and not is_sixteen:
        raise ValueError(
            "its levels are floats, signed or of 32 bits, so that black and white are not known; "
            "save it with 8 or 16 bits"
        )
    if not is_sixteen:
        return image
    import numpy as np
    from PIL import Image

    tags = getattr(image, "tag_v2", {})
    levels = np.asarray(image) >> (tags.get(_BITS, (16,))[0] - 8)
    if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        levels = 255 - levels
    return Image.fromarray(levels.astype(np.uint8))


def _on_white(image: Any) -> Any:
    """Return an image in mode "L" or "RGB", transparent parts blended with white."""
    from PIL import ImageChops

    mode = "L" if image.getbands()[0] in "1L" and image.mode != "LAB" else "RGB"
    if not image.has_transparency_data or _has_wide_key(image):
        return image if image.mode == mode else image.convert(mode)
    image = image.convert(f"{mode}A")
    alpha, flat = image.getchannel("A"), image.convert(mode)
    flat.paste("white", mask=ImageChops.invert(alpha))
    return flat


def _has_wide_key(image: Any) -> bool:
    """Whether the transparent colour has 16 bits, of which the pixels have lost eight."""
    key = image.info.get("transparency")
    return isinstance(key, tuple) and max(key) > 255
