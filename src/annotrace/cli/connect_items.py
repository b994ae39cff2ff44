"""What a classifier learns from in `annotrace connect`: texts or images of the tasks."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.item_sources import decode_images, describe_encoded
from annotrace.cli.options import (
    Command,
    image_size_option,
    max_pixels_option,
    skip_broken_option,
)
from annotrace.cli.output import echo_warnings
from annotrace.limits import MAX_PIXELS

if TYPE_CHECKING:
    from annotrace.connect import LabellingTool, Pulled
    from annotrace.connect.images import ItemImages
    from annotrace.data import ItemSource, TextSource


@dataclass(frozen=True)
class TaskImages:
    """The field of --image, the folder that keeps the images, and how they are read."""

    field: str
    folder: Path
    size: int = 64
    max_pixels: int = MAX_PIXELS
    skip_broken: bool = False

    def open(self, tool: LabellingTool, pulled: Pulled, verbose: bool) -> ItemImages:
        """Download the images that are missing."""
        from annotrace.connect.estimation import field_of
        from annotrace.connect.images import ImageStore

        addresses = field_of(pulled, self.field, "--image")
        store = ImageStore(
            self.folder,
            tool.files,
            max_pixels=self.max_pixels,
            on_error="skip" if self.skip_broken else "raise",
        )
        size = (self.size, self.size)
        with echo_warnings("images"):
            return store.open(addresses, f"the field {self.field!r}", verbose=verbose, size=size)


def task_image_options(command: Command) -> Command:
    """Add --image and its options, passed as one `TaskImages` with a folder for the command."""

    @functools.wraps(command)
    def with_images(
        *args: Any,
        image: str | None,
        image_size: int,
        max_pixels: int,
        skip_broken: bool,
        **options: Any,
    ) -> Any:
        if image is None:
            return command(*args, image=None, **options)
        with TemporaryDirectory(prefix="annotrace-images-") as folder:
            given = TaskImages(image, Path(folder), image_size, max_pixels, skip_broken)
            return command(*args, image=given, **options)

    where = click.option(
        "--image",
        metavar="FIELD",
        help="Train a classifier on this image of the tasks, as `fit` does.",
    )
    return where(image_size_option(skip_broken_option(max_pixels_option(with_images))))


@dataclass
class TaskItems:
    """Reads the items of each round: texts or images, encoded if that is asked for.

    If the field of the tasks has not changed, the items are those of the last round: watching
    mostly sees new labels of the same tasks.
    """

    tool: LabellingTool
    text: str | None
    images: TaskImages | None
    encoder: str | None
    quiet: bool
    shown: TextSource | ItemImages = field(init=False)
    source: ItemSource = field(init=False)
    _values: list[tuple[str, Any]] | None = field(default=None, init=False)

    def read(self, pulled: Pulled) -> ItemSource:
        """Return what the classifier learns from; `shown` is what a report shows of it."""
        name = (self.text or "") if self.images is None else self.images.field
        values = [(item, fields.get(name)) for item, fields in pulled.data.items()]
        if values != self._values:
            self.shown = self._open(pulled)
            self.source = self._prepare()
            self._values = values
        return self.source

    def report_options(self) -> dict[str, Any]:
        """Return the items that were read last, as an option of `write_report`."""
        return {"texts" if self.images is None else "images": self.shown}

    def _open(self, pulled: Pulled) -> TextSource | ItemImages:
        from annotrace.connect.estimation import texts_of

        if self.images is not None:
            return self.images.open(self.tool, pulled, not self.quiet)
        assert self.text is not None
        return texts_of(pulled, self.text)

    def _prepare(self) -> ItemSource:
        from annotrace.data import encode

        if self.encoder is None:
            return decode_images(self.shown, self.quiet)
        with echo_warnings("images"):
            encoded = encode(self.shown, self.encoder, verbose=not self.quiet)
        if not self.quiet:
            click.echo(describe_encoded(encoded))
        return encoded
