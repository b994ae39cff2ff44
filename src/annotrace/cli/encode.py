"""`annotrace encode`: texts or images in, features out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.limits import ReadingCommand, limit_options
from annotrace.cli.options import (
    PATH,
    Images,
    device_option,
    follow_links_option,
    max_pixels_option,
    out_options,
    quiet_option,
)
from annotrace.cli.output import check_file, echo_warnings

if TYPE_CHECKING:
    from annotrace.data import EncodedSource


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
@click.option(
    "--cache",
    type=PATH,
    metavar="FOLDER",
    help="Folder of the cache.  [default: annotrace/encodings among the caches of the user]",
)
@click.option("--no-cache", is_flag=True, help="Encode all items, and keep nothing but --out.")
@follow_links_option
@max_pixels_option
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

    INPUT is a folder of images, or a table (csv, tsv, xlsx, JSON, parquet) with an item column and
    a text column; it may be a label file that repeats the text in every row of an item. FILE gets X
    (the features, float32), items (their names) and encoder (a record of the model).

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

    check_file(out, overwrite)
    if no_cache and cache is not None:
        raise click.UsageError("Give --cache FOLDER or --no-cache, not both.")
    items, names = _read_images(input, reading) if input.is_dir() else _read_texts(input, reading)
    with echo_warnings("cache"):
        encoded = annotrace.data.encode(
            items,
            encoder,
            names=names,
            batch_size=batch_size,
            device=device,
            cache=False if no_cache else cache,
            verbose=not quiet,
        )
    encoded.write(out)
    if not quiet:
        click.echo(_describe(encoded, out))


def _read_images(folder: Path, reading: dict[str, Any]) -> tuple[Any, None]:
    if reading["text"] or reading["item"]:
        raise click.UsageError("--item and --text are columns of a table, but INPUT is a folder.")
    options = {name: reading[name] for name in ("follow_links", "max_pixels")}
    return Images(folder, options).open(), None


def _read_texts(path: Path, reading: dict[str, Any]) -> tuple[list[Any], list[str]]:
    from annotrace.labels.side_tables import read_texts
    from annotrace.limits import Limits

    limits = Limits(**reading["limits"])
    found = read_texts(path, item=reading["item"], text=reading["text"], limits=limits)
    return list(found.texts), found.items


def _describe(encoded: EncodedSource, out: Path) -> str:
    from annotrace.errors import count

    nouns = {"text": "text", "pairs": "pair", "images": "image"}
    n_items = count(len(encoded), nouns[encoded.encoder.kind])
    n_features, file = count(encoded.shape[0], "feature"), shlex.quote(str(out))
    return (
        f"Encoded {n_items} with {encoded.encoder.name} as {n_features} each; "
        f"{encoded.n_computed:,} had to be computed.\n"
        f"Wrote {file}.\n"
        f"Next: annotrace fit LABELS --features {file} --out run"
    )
