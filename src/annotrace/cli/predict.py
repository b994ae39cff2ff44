"""`annotrace predict`: the classes of new items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotrace.cli.folders import check_file, out_options
from annotrace.cli.source_options import read_source, source_options

if TYPE_CHECKING:
    from annotrace.data import ItemSource
    from annotrace.methods import CrowdEstimator


@click.command(short_help="Predict the classes of new items with the classifier of a run.")
@click.argument("run", type=click.Path(path_type=Path))
@source_options
@out_options("FILE", "csv file to write.")
@click.option("--item", metavar="COLUMN", help="Column of a parquet file that names the item.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
def predict(
    run: Path,
    features: Path | None,
    images: Path | None,
    out: Path,
    overwrite: bool,
    item: str | None,
    device: str,
) -> None:
    """Predict the classes of new items with the classifier that `annotrace fit` wrote to RUN.

    The csv has a row an item: item, label (the likeliest class), confidence (its probability),
    and the probability of every class. Images are read at the size and in the colours of the
    run, and named as in the run where their names are known there.

    \b
    Examples:
      annotrace predict run --features new.npz --out predictions.csv
      annotrace predict run --images more-photos/ --out predictions.csv
    """
    from annotrace.aggregation.runs import AggregatedRun
    from annotrace.errors import RunError
    from annotrace.labels.writing import write_classes
    from annotrace.methods.runs import load

    check_file(out, overwrite)
    model = load(run, device=device)
    if isinstance(model, AggregatedRun):
        raise RunError(
            f"{run} is from `annotrace aggregate`, which learns no classifier; make a run with "
            "`annotrace fit`."
        )
    if images is not None and len(model.input_shape_) < 2:
        raise RunError(f"{run} was fitted on features, not on images; give it --features FILE.")
    size, color = _image_shape(model)
    source = _named_as_in(model, read_source(features, images, size, color, item))
    probabilities = model.predict_proba(source)
    items = range(len(source)) if source.items is None else source.items.tolist()
    write_classes(out, items, model.classes_, probabilities)
    click.echo(f"Wrote the classes of {len(source):,} items to {out}.")


def _named_as_in(model: CrowdEstimator, source: ItemSource) -> ItemSource:
    """Name images as the run does, if it has any of them; else they are named by path."""
    from annotrace.data import ImageFolder
    from annotrace.errors import InputError

    if not isinstance(source, ImageFolder):
        return source
    try:
        return source.matching(model.table_.items)
    except InputError:
        return source


def _image_shape(model: CrowdEstimator) -> tuple[tuple[int, int], bool]:
    shape = model.input_shape_
    size = (shape[0], shape[1]) if len(shape) >= 2 else (1, 1)
    return size, len(shape) == 3
