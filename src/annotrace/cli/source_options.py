"""What is labelled, as the commands take it: a feature file or a folder of images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from annotrace.data import ItemSource

Command = Callable[..., Any]


def source_options(command: Command) -> Command:
    """Give a command --features and --images."""
    images = click.option(
        "--images",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="A folder of png, jpg or bmp images; items are named by path or file name.",
    )
    features = click.option(
        "--features",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="npz with X and items, parquet with an item column, or npy (rows by position).",
    )
    return features(images(command))


def read_source(
    features: Path | None,
    images: Path | None,
    size: tuple[int, int],
    color: bool,
    item: str | None = None,
) -> ItemSource:
    """Read the features, whose item column may be `item`, or open the folder of images."""
    from annotrace.data import ImageFolder, read_features

    if features is not None and images is None:
        return read_features(features, item=item)
    if images is not None and features is None:
        return ImageFolder(images, size=size, color=color)
    raise click.UsageError(
        "Say what is labelled: either --features FILE or --images FOLDER (with neither, "
        "`annotrace aggregate` takes labels alone)."
    )
