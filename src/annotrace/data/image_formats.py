"""Formats of images: recognised by their first bytes, and opened by the decoder of that one format.

Pillow knows some forty formats, of which one runs Ghostscript, and its `Image.open` tries them in
turn. Here only the decoders in `FORMATS` are ever called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, NamedTuple

from annotrace.data.image_headers import gif_size, tiff_size, webp_size
from annotrace.errors import InputError

SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"),
    *(".heic", ".heif", ".avif"),
)
"""Suffixes of files that are taken for images; what they are is decided by their content."""

NAMES = "PNG, JPEG, BMP, GIF, WebP, TIFF, HEIC or AVIF"

_AVIF_BRANDS = {b"avif", b"avis"}
_HEIF_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1"}
_START = 64


class Format(NamedTuple):
    """A format: whether a file begins like it, its decoder, and its size if that must be known."""

    begins: Callable[[bytes], bool]
    open: Callable[[IO[bytes]], Any]
    early_size: Callable[[IO[bytes]], tuple[int, int]] | None = None


def recognise(file: IO[bytes]) -> Format:
    """Return the format of a file, by its first bytes; the file is at its start again."""
    start = file.read(_START)
    file.seek(0)
    for format in FORMATS:
        if format.begins(start):
            return format
    raise ValueError(f"it is not {NAMES}")


def _open_png(file: IO[bytes]) -> Any:
    from PIL.PngImagePlugin import PngImageFile

    return PngImageFile(file)


def _open_jpeg(file: IO[bytes]) -> Any:
    from PIL.JpegImagePlugin import JpegImageFile

    return JpegImageFile(file)


def _open_bmp(file: IO[bytes]) -> Any:
    from PIL.BmpImagePlugin import BmpImageFile

    return BmpImageFile(file)


def _open_gif(file: IO[bytes]) -> Any:
    from PIL.GifImagePlugin import GifImageFile

    return GifImageFile(file)


def _open_webp(file: IO[bytes]) -> Any:
    from PIL.WebPImagePlugin import WebPImageFile

    return WebPImageFile(file)


def _open_tiff(file: IO[bytes]) -> Any:
    from PIL.TiffImagePlugin import TiffImageFile

    return TiffImageFile(file)


def _open_avif(file: IO[bytes]) -> Any:
    try:
        from PIL.AvifImagePlugin import SUPPORTED, AvifImageFile
    except ImportError:
        SUPPORTED = False
    if not SUPPORTED:
        raise MissingDecoderError("AVIF images need Pillow 11.3 or newer with AVIF: update pillow")
    return AvifImageFile(file)


def _open_heif(file: IO[bytes]) -> Any:
    try:
        from pillow_heif import HeifImageFile
    except ImportError:
        raise MissingDecoderError(
            'HEIC images need another package: pip install "annotrace[heic]"'
        ) from None
    decoder: Any = HeifImageFile
    return decoder(file)


class MissingDecoderError(InputError):
    """A package that decodes the format is not installed; the file may be whole."""


def _begins_with(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda start: start.startswith(signatures)


def _is_webp(start: bytes) -> bool:
    return start.startswith(b"RIFF") and start[8:12] == b"WEBP"


def _has_brand(start: bytes, wanted: set[bytes]) -> bool:
    """Whether the first box of a file names one of some brands, its own or a compatible one."""
    if start[4:8] != b"ftyp":
        return False
    end = min(int.from_bytes(start[:4], "big"), len(start))
    brands = {start[8:12], *(start[at : at + 4] for at in range(16, end, 4))}
    return not wanted.isdisjoint(brands)


FORMATS = (
    Format(_begins_with(b"\x89PNG\r\n\x1a\n"), _open_png),
    Format(_begins_with(b"\xff\xd8\xff"), _open_jpeg),
    Format(_begins_with(b"BM"), _open_bmp),
    Format(_begins_with(b"GIF87a", b"GIF89a"), _open_gif, gif_size),
    Format(_is_webp, _open_webp, webp_size),
    Format(_begins_with(b"II*\x00", b"MM\x00*"), _open_tiff, tiff_size),
    Format(lambda start: _has_brand(start, _AVIF_BRANDS), _open_avif),
    Format(lambda start: _has_brand(start, _HEIF_BRANDS), _open_heif),
)
