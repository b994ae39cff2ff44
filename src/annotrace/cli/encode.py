"""`annotrace encode`: texts or images in, features out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from annotrace.cli.item_sources import choose_cache, describe_encoded
from annotrace.cli.limits import ReadingCommand, limit_options
from annotrace.cli.options import (
    IMAGE_OPTIONS,
    PATH,
    Images,
    cache_option,
    device_option,
    image_reading_options,
    no_cache_option,
    out_options,
    quiet_option,
)
from annotrace.cli.output import check_file, echo_warnings


@click.command(cls=ReadingCommand, short_help="Encode texts or images as features with a model.")
@click.argument("input", type=PATH)
@click.option(
    "--encoder",
    required=True,
    metavar="NAME_OR_PATH",
    help="The folder of a model, or its name on the Hugging Face hub.",
)
@out_options("FILE", "npz file to write, for --features.")
@click.option("--item", metavar="COLUMN", help="Column that names the item.")
@click.option(
    "--text",
    metavar="COLUMN",
    multiple=True,
    help="Column of texts; twice for pairs of texts.  [default: text, sentence, review, ...]",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Items that the model encodes at a time.",
)
@device_option
@cache_option
@no_cache_option
@image_reading_options
@quiet_option
@limit_options
def encode(
    input: Path,
    encoder: str,
    out: Path,
    overwrite: bool,
    cache: Path | None,
    no_cache: bool,
    batch_size: int,
    device: str,
    quiet: bool,
    **reading: Any,
) -> None:
    """Encode the texts or images of INPUT as features, with a pretrained model.

    INPUT is a folder of images, tar files with images, or a table (csv, tsv, xlsx, JSON, parquet)
    with an item column and a text column; it may be a label file that repeats the text in every row
    of an item. FILE gets X (the features, float32), items (their names) and encoder (a record of
    the model).

    The model is the folder of a Hugging Face model or of sentence-transformers, or the name of one
    on the hub, which is downloaded once. This needs the package's extra: pip install
    "annotrace[encoders]".

    Features are cached by model and content: only new or changed items are encoded. After an
    interruption, the same command continues where it stopped.

    \b
    Examples:
      annotrace encode texts.csv --encoder sentence-transformers/all-MiniLM-L6-v2 --out X.npz
      annotrace encode pairs.csv --text premise --text hypothesis --encoder model/ --out X.npz
      annotrace encode photos/ --encoder facebook/dinov2-small --out X.npz
      annotrace fit labels.csv --features X.npz --out run
    """
    import annotrace.data
    from annotrace.data.shards import is_shards

    check_file(out, overwrite)
    folder = choose_cache(cache, no_cache)
    is_images = input.is_dir() or is_shards(input)
    items, names = _read_images(input, reading) if is_images else _read_texts(input, reading)
    with echo_warnings("cache"):
        encoded = annotrace.data.encode(
            items,
            encoder,
            names=names,
            batch_size=batch_size,
            device=device,
            cache=folder,
            verbose=not quiet,
        )
    encoded.write(out)
    if not quiet:
        file = shlex.quote(str(out))
        click.echo(f"{describe_encoded(encoded)}\nWrote {file}.")
        click.echo(f"Next: annotrace fit LABELS --features {file} --out run")


def _read_images(folder: Path, reading: dict[str, Any]) -> tuple[Any, None]:
    if reading["text"] or reading["item"]:
        raise click.UsageError("--item and --text are columns of a table, but INPUT is images.")
    return Images(folder, **{name: reading[name] for name in IMAGE_OPTIONS}).open(), None


def _read_texts(path: Path, reading: dict[str, Any]) -> tuple[list[Any], list[str] | None]:
    from annotrace.labels.side_tables import read_texts
    from annotrace.limits import Limits

    limits = Limits(**reading["limits"])
    found = read_texts(path, item=reading["item"], text=reading["text"], limits=limits)
    return list(found.texts), found.items
