"""The items of a command: --features, --images or --text, and --encoder."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from annotrace.cli.item_texts import Texts, text_options
from annotrace.cli.options import (
    PATH,
    Command,
    Decorator,
    Images,
    cache_option,
    image_options,
    no_cache_option,
)
from annotrace.cli.output import echo_warnings
from annotrace.limits import FEATURE_LIMITS

if TYPE_CHECKING:
    from annotrace.data import EncodedSource, ItemSource

Cache = Path | Literal[False] | None


@dataclass(frozen=True)
class GivenItems:
    """What the options of a command say about the items: exactly one of three, and an encoder."""

    features: Path | None
    images: Images | None
    texts: Texts | None
    encoder: str | None
    cache: Cache

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.features, self.images, self.texts)) != 1:
            raise click.UsageError(
                "Give exactly one of --features FILE, --images FOLDER and --text FILE (with labels "
                "alone, use `annotrace aggregate`)."
            )
        if self.encoder is not None and self.features is not None:
            raise click.UsageError(
                "--encoder is for --images and --text: features are encoded already."
            )

    @property
    def option(self) -> str:
        """The option that was given."""
        given = {"--features": self.features, "--images": self.images, "--text": self.texts}
        return next(option for option, value in given.items() if value is not None)

    def read_features(self, item: str | None, limits: Mapping[str, int]) -> ItemSource:
        """Read the file of features, whose item column may be `item`."""
        from annotrace.data import read_features

        assert self.features is not None
        limited = replace(FEATURE_LIMITS, **limits)
        return read_features(self.features, item=item, limits=limited)

    def encode(self, source: Any, encoder: Any, device: str, quiet: bool) -> EncodedSource:
        """Encode texts or images."""
        from annotrace.data import encode

        with echo_warnings("cache"):
            encoded = encode(source, encoder, device=device, cache=self.cache, verbose=not quiet)
        if not quiet:
            click.echo(describe_encoded(encoded))
        return encoded


def source_options(text_metavar: str, text_help: str, encoder_help: str) -> Decorator:
    """Return --features, --images, --text, --encoder and their options, as one `GivenItems`."""
    features = click.option(
        "--features",
        type=PATH,
        metavar="FILE",
        help="npz with X and items, parquet with an item column, or npy (rows by position).",
    )
    images = image_options(
        "A folder of images (png, jpg, bmp, gif, webp, tiff, heic, avif), or tar files with them: "
        "one, a folder, or data-{000..009}.tar; items are named by path or file name."
    )
    texts = text_options(text_metavar, text_help)
    encoder = click.option("--encoder", metavar="NAME_OR_PATH", help=encoder_help)

    def add_options(command: Command) -> Command:
        @functools.wraps(command)
        def with_items(*args: Any, cache: Path | None, no_cache: bool, **options: Any) -> Any:
            names = ("features", "images", "texts", "encoder")
            given = {name: options.pop(name) for name in names}
            items = GivenItems(**given, cache=choose_cache(cache, no_cache))
            return command(*args, items=items, **options)

        return features(images(texts(encoder(cache_option(no_cache_option(with_items))))))

    return add_options


def decode_images(source: ItemSource, quiet: bool) -> ItemSource:
    """Decode images once; other items are returned unchanged."""
    from annotrace.data import ImageSource

    if not isinstance(source, ImageSource):
        return source
    with echo_warnings("images"):
        return source.decoded(verbose=not quiet)


def choose_cache(cache: Path | None, no_cache: bool) -> Cache:
    """Return the cache that --cache and --no-cache name, None for that of the user."""
    if no_cache and cache is not None:
        raise click.UsageError("Give --cache FOLDER or --no-cache, not both.")
    return False if no_cache else cache


def describe_encoded(encoded: EncodedSource) -> str:
    """Describe what was encoded."""
    from annotrace.errors import count

    nouns = {"text": "text", "pairs": "pair", "images": "image"}
    n_items = count(len(encoded), nouns[encoded.encoder.kind])
    n_features = count(encoded.shape[0], "feature")
    return (
        f"Encoded {n_items} with {encoded.encoder.name} as {n_features} each; "
        f"{encoded.n_computed:,} had to be computed."
    )
