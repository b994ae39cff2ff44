"""Small pictures of items, as data URIs."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up

if TYPE_CHECKING:
    from annotrace.data import ImageSource

# From the code of an item to a data URI, or "" if it has no picture.
Pictures: TypeAlias = Callable[[int], str]

MAX_SIDE = 128


def pictures_of(images: Any, table: LabelTable) -> Pictures:
    """Return a function from items to their pictures.

    Parameters
    ----------
    images : None, path, ImageSource, or array of shape (n_items, height, width[, channels])
        Images of a folder or of tar files are matched by the items' names; an array has the items
        in the order of the table, which is that of `X` in `fit`. Floats are scaled from the
        smallest to the largest.
    table : LabelTable
    """
    if images is None:
        return lambda item: ""
    from annotrace.data import ImageSource, open_images

    if isinstance(images, str | Path):
        images = open_images(images)
    if isinstance(images, ImageSource):
        return _from_files(images.matching(table.items), table)
    return _from_array(np.asarray(images), table.n_items)


def _from_files(images: ImageSource, table: LabelTable) -> Pictures:
    place = look_up(table.items, images.items)

    @cache
    def picture(item: int) -> str:
        if place[item] < 0:
            return ""
        try:
            return _encode(images.decode(int(place[item]), MAX_SIDE))
        except InputError as error:
            if images.on_error == "raise":
                raise images.with_remedy(error) from None
            warnings.warn(f"A picture is skipped. {error}", stacklevel=2)
            return ""

    return picture


def _from_array(images: NDArray[Any], n_items: int) -> Pictures:
    if len(images) != n_items or images.ndim not in (3, 4):
        raise InputError(
            f"Expected `images` with a picture for each of {n_items:,} items, of shape ({n_items}, "
            f"height, width) or ({n_items}, height, width, 3), but got {images.shape}."
        )
    least, most = (0, 255) if images.dtype == np.uint8 else (images.min(), images.max())

    @cache
    def picture(item: int) -> str:
        from PIL import Image

        grey = (images[item] - float(least)) / max(float(most - least), 1e-9)
        pixels = np.round(255 * np.clip(grey, 0, 1)).astype(np.uint8)
        return _encode(Image.fromarray(pixels.squeeze()))

    return picture


def _encode(image: Any) -> str:
    """Return a picture as a data URI: tiny ones unchanged, others as small jpeg."""
    tiny = max(image.size) <= 32
    image = image.convert("L" if image.mode == "L" else "RGB")
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    stream = io.BytesIO()
    image.save(stream, **({"format": "PNG"} if tiny else {"format": "JPEG", "quality": 80}))
    kind = "png" if tiny else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
