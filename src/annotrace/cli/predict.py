"""`annotrace predict`: the classes of new items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotrace.cli.limits import ReadingCommand, limit_options
from annotrace.cli.options import (
    PATH,
    Images,
    device_option,
    out_options,
    raw_option,
    read_source,
    source_options,
)
from annotrace.cli.output import check_file

if TYPE_CHECKING:
    from annotrace.data import ItemSource
    from annotrace.methods import CrowdEstimator


@click.command(
    cls=ReadingCommand, short_help="Predict the classes of new items with the classifier of a run."
)
@click.argument("run", type=PATH)
@source_options
@out_options("FILE", "csv file to write.")
@click.option("--item", metavar="COLUMN", help="Column of a parquet file that names the item.")
@raw_option
@device_option
@limit_options
def predict(
    run: Path,
    features: Path | None,
    images: Images | None,
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
    of the run, and named as in the run if their names are known there.

    \b
    Examples:
      annotrace predict run --features new.npz --out predictions.csv
      annotrace predict run --images more-photos/ --out predictions.csv
    """
    from annotrace.aggregation import Aggregation
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
    shape = model.input_shape_
    if images is not None and len(shape) < 2:
        raise RunError(f"{run} was fitted on features, not on images; use --features FILE.")
    size = (shape[0], shape[1]) if len(shape) >= 2 else (1, 1)
    source = read_source(features, images, size, len(shape) == 3, item, limits)
    source = _named_as_in(model, source)
    probabilities = model.predict_proba(source)
    items = range(len(source)) if source.items is None else source.items.tolist()
    write_classes(out, items, model.classes_, probabilities, raw=raw)
    click.echo(f"Wrote the classes of {len(source):,} items to {out}.")


def _named_as_in(model: CrowdEstimator, source: ItemSource) -> ItemSource:
    """Name images as the run does if it has any of them; otherwise they are named by path."""
    from annotrace.data import ImageFolder
    from annotrace.errors import InputError

    if not isinstance(source, ImageFolder):
        return source
    try:
        return source.matching(model.table_.items)
    except InputError:
        return source
