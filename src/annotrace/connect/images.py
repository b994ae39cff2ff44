"""Images that a labelling tool serves, downloaded once."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from annotrace.connect.addresses import is_data, locate, read_data
from annotrace.connect.json_api import SERVER_ERROR, UNAUTHORIZED, JsonApi
from annotrace.data.decoding import max_bytes
from annotrace.data.image_files import ImageFile
from annotrace.data.image_source import ImageSource
from annotrace.errors import ConnectError, InputError, LimitError
from annotrace.labels.vocabulary import as_names
from annotrace.limits import MAX_PIXELS
from annotrace.progress import show_progress

MAX_SHOWN = 100


class ItemImages(ImageSource):
    """Images by the names of their items, which need not look like paths.

    Parameters
    ----------
    files : sequence of ImageFile
    items : sequence of str
    source : str
    **options
        As in `ImageSource`.
    """

    def __init__(
        self, files: Sequence[ImageFile], items: Sequence[str], source: str, **options: Any
    ) -> None:
        super().__init__(files, [str(place) for place in range(len(files))], source, **options)
        self.items = as_names(items)

    def matching(self, names: Any) -> ItemImages:
        """Return these images: they are named as the labels are."""
        return self


class ImageStore:
    """A folder of the images that were downloaded, by address.

    An image behind an address of a labelling tool does not change, so that it is downloaded once.

    Parameters
    ----------
    folder : Path
    server : JsonApi
        The only server that is asked.
    max_pixels, on_error
        As in `ImageSource`. With "skip", an image that the server does not have is left out too.
    """

    def __init__(
        self,
        folder: Path,
        server: JsonApi,
        *,
        max_pixels: int = MAX_PIXELS,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> None:
        self.folder, self.server = folder, server
        self.max_pixels, self.on_error = max_pixels, on_error

    def open(
        self, addresses: Mapping[str, Any], source: str, *, verbose: bool = False, **options: Any
    ) -> ItemImages:
        """Download the images that are missing.

        Parameters
        ----------
        addresses : mapping from item to str
        source : str
            Where the addresses are from, for messages.
        verbose : bool
            Show a progress bar.
        **options
            Further options of `ImageSource`.

        Returns
        -------
        ItemImages

        Raises
        ------
        InputError
            If an address is not one of this server; then nothing is downloaded.
        """
        for item, address in addresses.items():
            self._check(item, address)
        self._download(addresses, verbose)
        root = str(self.folder)
        files = [
            ImageFile(str(self._path(address)), root, name=_describe(item, address))
            for item, address in addresses.items()
        ]
        options |= {"max_pixels": self.max_pixels, "on_error": self.on_error}
        return ItemImages(files, list(addresses), source, **options)

    def _download(self, addresses: Mapping[str, str], verbose: bool) -> None:
        missing = dict[str, str]()
        for item, address in addresses.items():
            if not self._path(address).exists():
                missing.setdefault(address, item)
        with show_progress(verbose and bool(missing), len(missing), "downloaded") as progress:
            for done, (address, item) in enumerate(missing.items(), start=1):
                self._path(address).write_bytes(self._fetch(item, address))
                progress.update(done)

    def _check(self, item: str, address: Any) -> None:
        if not isinstance(address, str) or not address.strip():
            raise InputError(
                f"Item {item}: expected the address of an image, but got {str(address)[:60]!r}. "
                "Name another field with --image."
            )
        if not is_data(address):
            try:
                locate(address, self.server.url)
            except InputError as error:
                raise InputError(f"{_describe(item, address)}: {error}") from None

    def _path(self, address: str) -> Path:
        return self.folder / hashlib.sha256(address.encode("utf-8", "surrogatepass")).hexdigest()

    def _fetch(self, item: str, address: str) -> bytes:
        """Return an image; one that is to be skipped is empty, and so cannot be decoded either."""
        try:
            return self._read(item, address)
        except InputError as error:
            if self.on_error == "raise":
                raise
            warnings.warn(str(error), stacklevel=2)
            return b""

    def _read(self, item: str, address: str) -> bytes:
        limit, place = max_bytes(self.max_pixels), _describe(item, address)
        try:
            if is_data(address):
                return read_data(address, limit)
            return self.server.download(address, limit)
        except LimitError as error:
            raise InputError(
                f"{place}: {error} Make the image smaller, or raise the limit with --max-pixels."
            ) from None
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        except ConnectError as error:
            if _is_refused(error):
                raise InputError(f"{place}: {error}") from None
            raise ConnectError(
                f"{place}: {error}", status=error.status, is_temporary=error.is_temporary
            ) from None


def _is_refused(error: ConnectError) -> bool:
    """Whether the server answers, but does not have this file.

    Label Studio answers 500, which means that it failed, for an upload that was deleted.
    """
    return error.status == SERVER_ERROR or (
        error.status not in (None, UNAUTHORIZED) and not error.is_temporary
    )


def _describe(item: str, address: str) -> str:
    return f"Item {item}, {address[:MAX_SHOWN]!r}"
