"""`annotrace predict`: the classes of new items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotrace.cli.item_sources import GivenItems, decode_images, source_options
from annotrace.cli.limits import ReadingCommand, limit_options
from annotrace.cli.options import (
    PATH,
    device_option,
    out_options,
    raw_option,
)
from annotrace.cli.output import check_file

if TYPE_CHECKING:
    from annotrace.data import ImageSource, ItemSource
    from annotrace.methods import CrowdEstimator


@click.command(
    cls=ReadingCommand, short_help="Predict the classes of new items with the classifier of a run."
)
@click.argument("run", type=PATH)
@source_options(
    "FILE",
    "A table with an item column and a text column; with nothing but texts, rows are numbered.",
    "Where the encoder of the run is now, if it has moved.",
)
@out_options("FILE", "csv file to write.")
@click.option("--item", metavar="COLUMN", help="Column of the table that names the item.")
@raw_option
@device_option
@limit_options
def predict(
    run: Path,
    items: GivenItems,
    out: Path,
    overwrite: bool,
    item: str | None,
    raw: bool,
    device: str,
    limits: dict[str, int],
) -> None:
    """Predict the classes of new items with the classifier that `annotrace fit` wrote to RUN.

    The csv has one row per item: item, label (the most probable class), confidence (its
    probability), and the probability of every class. Images are read at the size and in the colours
    of the run, and named as in the run if their names are known there. If the run was fitted with
    an encoder, new texts or images are encoded with the same model.

    \b
    Examples:
      annotrace predict run --features new.npz --out predictions.csv
      annotrace predict run --images more-photos/ --out predictions.csv
      annotrace predict run --text new.csv --text-column body --out predictions.csv
    """
    from annotrace.aggregation import Aggregation
    from annotrace.data import encoder_from_record
    from annotrace.errors import RunError
    from annotrace.labels.writing import write_classes
    from annotrace.methods import load

    check_file(out, overwrite)
    model = load(run, device=device)
    if isinstance(model, Aggregation):
        raise RunError(
            f"{run} is from `annotrace aggregate` and has no classifier; create a run with "
            "`annotrace fit`."
        )
    source = _read_items(items, model, run, item, limits)
    if model.encoder_ is not None and items.features is None:
        encoder = encoder_from_record(
            model.encoder_, items.encoder, device=device, cache=items.cache
        )
        source = items.encode(source, encoder, device, quiet=False)
    source = decode_images(source, quiet=False)
    probabilities = model.predict_proba(source)
    names = range(len(source)) if source.items is None else source.items.tolist()
    write_classes(out, names, model.classes_, probabilities, raw=raw)
    click.echo(f"Wrote the classes of {len(source):,} items to {out}.")


def _read_items(
    given: GivenItems, model: CrowdEstimator, run: Path, item: str | None, limits: dict[str, int]
) -> ItemSource:
    """Read new items of the kind that the run was fitted on, or that its encoder encodes."""
    _check_kind(given, model, run)
    if given.texts is not None:
        return given.texts.read(item, limits, can_be_unnamed=True)
    if given.images is None:
        return given.read_features(item, limits)
    shape = model.input_shape_
    options = {"size": shape[:2], "color": len(shape) == 3} if len(shape) > 1 else {}
    return _named_as_in(model, given.images.open(**options))


def _check_kind(given: GivenItems, model: CrowdEstimator, run: Path) -> None:
    """Raise a `RunError` if the classifier takes other items than those given."""
    from annotrace.errors import RunError

    record = model.encoder_
    if record is not None:
        wanted = {"--features", "--images" if record.kind == "images" else "--text"}
        how = f"on features by the encoder {record.name}"
    elif model.input_kind_ == "text":
        wanted, how = {"--text"}, "on texts"
    elif len(model.input_shape_) > 1:
        wanted, how = {"--images", "--features"}, "on images"
    else:
        wanted, how = {"--features"}, "on features"
    if given.option not in wanted:
        raise RunError(
            f"{run} was fitted {how}; use {' or '.join(sorted(wanted))} instead of {given.option}."
        )
    if given.encoder is not None and record is None:
        raise RunError(f"{run} was fitted without an encoder; leave out --encoder.")


def _named_as_in(model: CrowdEstimator, source: ImageSource) -> ImageSource:
    """Name images as the run does if it has any of them; otherwise they are named by path."""
    from annotrace.errors import InputError

    try:
        return source.matching(model.table_.items)
    except InputError:
        return source
