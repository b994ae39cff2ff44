"""`annotrace fit`: labels and features in, a run out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.item_sources import GivenItems, decode_images, source_options
from annotrace.cli.label_files import LabelFiles, describe_labels, gold_from_truth
from annotrace.cli.limits import ReadingCommand
from annotrace.cli.options import (
    PATH,
    device_option,
    effort_option,
    image_size_option,
    label_options,
    learn_truth_option,
    out_options,
    quiet_option,
    raw_option,
    report_options,
    seed_option,
    taxonomy_option,
)
from annotrace.cli.output import echo_warnings, new_run, print_result, save_with_report
from annotrace.cli.together import read_everywhere, resume_command, together
from annotrace.errors import ProcessLostError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from annotrace.data import ItemSource
    from annotrace.distributed import Processes
    from annotrace.labels import LabelTable
    from annotrace.methods import CrowdEstimator

CHECKPOINT = "checkpoint.bin"
SPECIAL = ("recipe", "effort", "distill", "structure", "taxonomy")
"""Options that only some methods have."""


@click.command(
    cls=ReadingCommand, short_help="Estimate true classes, a classifier and annotators from labels."
)
@label_options
@source_options(
    "FILE|COLUMN",
    "A table with an item column and a text column, or a column of LABELS that has the text in "
    "every row of its item; two columns for pairs of texts.",
    "Encode the texts or images with a pretrained model, and learn from its features: a folder, or "
    "a name on the Hugging Face hub.",
)
@out_options("RUN", "Folder to write the run to.")
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="auto, crossfit, trace, geo-crowd-layer, crowd-layer, union-net, conal, madl, annot-mix, "
    "coin-net, gem, mbem, single-cm, wdn, soft-bootstrap, vanilla, two-stage, item-dependent or "
    "oracle. The default, auto, is the recommended recipe.",
)
@click.option(
    "--recipe/--no-recipe",
    default=None,
    help="For methods that train one network: with or without several initialisations, mixup, "
    "repair of classes and temperature.  [default: with, for trace only]",
)
@effort_option
@click.option(
    "--distill",
    is_flag=True,
    default=None,
    help="For the same methods: train one network on the posterior of all items at last, and "
    "predict by it, not by the mean of several networks.",
)
@click.option(
    "--structure",
    metavar="NAME",
    help="For --method trace: the annotator model: full, pooled, low-rank, per-class, taxonomy or "
    "auto.",
)
@taxonomy_option
@click.option(
    "--confusion",
    type=PATH,
    metavar="FILE",
    help="For --method oracle: the true matrices, like confusion.npz of `annotrace simulate`.",
)
@learn_truth_option
@click.option(
    "--keep-unlabelled",
    is_flag=True,
    help="Keep items without labels: predicted, not learned from.",
)
@click.option(
    "--backbone",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="The network: mlp, linear, cnn, cnn-wide, resnet9 or resnet50; auto is mlp for features, "
    "cnn for images and linear for texts.",
)
@click.option(
    "--augment",
    type=click.Choice(["auto", "none", "crop", "crop+flip"]),
    default="auto",
    show_default=True,
    help="Learn from images shifted, or shifted and mirrored, at random; auto chooses by held-out "
    "labels. Images are predicted as they are.",
)
@click.option(
    "--average-flips",
    is_flag=True,
    help="Predict an image by the mean of its probabilities and those of its mirror image.",
)
@click.option("--epochs", type=int, help="Passes over the items; each method has its default.")
@click.option("--batch-size", type=int, help="Items per step.")
@click.option("--lr", type=float, help="Learning rate of the network.")
@seed_option("The same seed gives the same run.")
@device_option
@image_size_option
@click.option("--grey", is_flag=True, help="Read images in greyscale.")
@report_options
@raw_option
@quiet_option
@click.option("--resume", is_flag=True, help="Resume a fit that was interrupted.")
@click.pass_context
def fit(
    ctx: click.Context,
    /,
    labels: LabelFiles,
    items: GivenItems,
    out: Path,
    overwrite: bool,
    method: str,
    confusion: Path | None,
    learn_truth: bool,
    keep_unlabelled: bool,
    image_size: int,
    grey: bool,
    report: bool,
    anonymous: bool,
    raw: bool,
    quiet: bool,
    resume: bool,
    **params: Any,
) -> None:
    """Estimate the true classes, train a classifier, and measure how reliable annotators are.

    LABELS is a table of items, annotators and labels: csv, tsv, xlsx, jsonl or parquet with one row
    per label (columns such as item, annotator, label), or csv, npy or npz with one row per item and
    one column per annotator. Columns are found by their usual names, or named with --item,
    --annotator and --label. Exports of labelling tools are read too, as in `annotrace convert`; -
    is standard input.

    RUN becomes a folder: truth.csv (the most probable class of each item), annotators.csv (skill
    of each annotator with its interval), confusion.npz (confusion matrices), report.html (a page
    for managers), and the classifier, for `annotrace predict`. The verdict says whether the labels
    identify the true classes.

    \b
    Examples:
      annotrace fit labels.csv --features features.npz --out run
      annotrace fit labels.csv --text texts.csv --out run
      annotrace fit labels.csv --text premise --text hypothesis --out run
      annotrace fit labels.csv --images photos/ --image-size 96 --out run
      annotrace fit labels.csv --images photos/ --encoder facebook/dinov2-small --out run
      annotrace fit answers.tsv --item photo --annotator initials --label verdict \\
          --skip unsure --features features.parquet --out run
      annotrace fit labels.csv --features features.npz --effort thorough --out run
      annotrace fit labels.csv --features features.npz --method trace --no-recipe --out run
      annotrace fit labels.csv --features features.npz --out run --resume
      torchrun --nproc-per-node 2 -m annotrace fit labels.csv --features features.npz --out run

    Ctrl-C stops and keeps a checkpoint, as SIGTERM does; the same command with --resume continues
    from it.
    """
    from annotrace.methods.inputs import leave_out_skipped

    checkpoint = out / CHECKPOINT
    with (
        together() as processes,
        _resumable(ctx, checkpoint),
        new_run(out, overwrite or (resume and checkpoint.exists()), processes=processes),
    ):
        if processes.is_first:
            _check_resume(checkpoint, resume)
        model = _make(method, params, confusion is not None)
        _check_together(items, processes)
        model.set_params(verbose=not quiet, checkpoint=checkpoint)
        table, layout = read_everywhere(labels, processes)
        shown, table = _read_items(
            items, labels, table, layout, image_size, not grey, keep_unlabelled
        )
        if method == "oracle":
            model.set_params(confusion=_true_matrices(confusion, table))
        if not quiet:
            click.echo(describe_labels(table, layout, learn_truth))
        if items.encoder is None:
            source = decode_images(shown, quiet)
        else:
            source = items.encode(shown, items.encoder, params["device"], quiet)
        with echo_warnings("images"):
            table = leave_out_skipped(table, source)
        gold = gold_from_truth(table) if learn_truth else None
        checkpoints = model.fit_with_checkpoints(source, table, gold=gold)
        processes.leave()
        if not processes.is_first:
            return
        options = {"anonymous": anonymous, **_report_items(items, shown)}
        where = save_with_report(model, out, report, raw=raw, **options)
        checkpoints.clear()
    if not quiet:
        print_result(model)
        click.echo(f"\nWrote {out}: truth.csv, annotators.csv and the classifier. {where}".rstrip())
        run = shlex.quote(str(out))
        click.echo(f"Next: annotrace predict {run} {items.option} NEW --out new.csv")


def _check_together(items: GivenItems, processes: Processes) -> None:
    from annotrace.errors import InputError

    if processes.size > 1 and items.encoder is not None:
        raise InputError(
            "--encoder works in one process: encode the items with `annotrace encode` first, and "
            "fit with --features."
        )


def _read_items(
    given: GivenItems,
    labels: LabelFiles,
    table: LabelTable,
    used: Any,
    size: int,
    color: bool,
    keep_unlabelled: bool,
) -> tuple[ItemSource, LabelTable]:
    """Read the items, and check that they match the labels before anything is computed."""
    source: ItemSource
    if given.images is not None:
        source = given.images.open(size=(size, size), color=color).matching(table.items)
    elif given.texts is not None:
        source = given.texts.read_beside(labels, used, None if keep_unlabelled else table)
    else:
        source = given.read_features(labels.options["item"], labels.limits)
    if keep_unlabelled:
        source, table = _keep_unlabelled(source, table)
    if source.items is not None and not table.positional:
        table.match_items(source.items)
    return source, table


def _report_items(given: GivenItems, source: ItemSource) -> dict[str, Any]:
    """Return the pictures or texts of the items, as options of `write_report`."""
    kinds = {"--images": "images", "--text": "texts"}
    return {kinds[given.option]: source} if given.option in kinds else {}


def _check_resume(checkpoint: Path, resume: bool) -> None:
    """Check that there is a checkpoint if and only if the fit is to be resumed."""
    from annotrace.errors import RunError

    if checkpoint.exists() and not resume:
        raise RunError(
            f"{checkpoint} is from an interrupted training; add --resume to continue it, or delete "
            "the file to start again."
        )
    if resume and not checkpoint.exists():
        raise RunError(f"There is no {checkpoint} to resume from; leave out --resume.")


def _make(method: str, params: dict[str, Any], has_confusion: bool) -> CrowdEstimator:
    """Make the estimator; those of `SPECIAL` are passed on if they are given."""
    from annotrace.errors import InputError
    from annotrace.methods import list_methods, make

    if has_confusion and method != "oracle":
        raise InputError(f"--confusion is for --method oracle; {method} learns the matrices.")
    seed = params.pop("seed")
    given = {name: params.pop(name) for name in SPECIAL}
    special = {name: value for name, value in given.items() if value is not None}
    if "recipe" in special:
        special["recipe"] = "default" if special["recipe"] else "none"
    model = make(method, **params, random_state=seed)
    for name in special.keys() - model.get_params():
        others = [known.name for known in list_methods() if name in known.factory().get_params()]
        raise InputError(
            f"--{name} does not apply to --method {method}, only to {', '.join(others)}."
        )
    model.set_params(**special)
    return model


def _keep_unlabelled(source: ItemSource, table: LabelTable) -> tuple[ItemSource, LabelTable]:
    from annotrace.errors import InputError

    if source.items is None or table.positional:
        raise InputError(
            "--keep-unlabelled matches items by name: it needs features with names (npz with X and "
            "items) and labels with an item column."
        )
    return source, table.with_items(source.items)


def _true_matrices(path: Path | None, table: LabelTable) -> NDArray[Any]:
    """Read matrices, shape (n_annotators, n_classes, n_classes), in the order of the table."""
    from annotrace.errors import InputError
    from annotrace.labels.files import open_file
    from annotrace.labels.npy import load_arrays
    from annotrace.labels.vocabulary import as_names, encode_with

    if path is None:
        raise InputError("--method oracle needs the true matrices: --confusion FILE.")
    with open_file(path) as file:
        arrays = load_arrays(file, str(path))
    if not {"confusion", "annotators", "classes"} <= set(arrays):
        raise InputError(f"{path} must have the arrays confusion, annotators and classes.")
    known, classes = as_names(arrays["annotators"]), as_names(arrays["classes"])
    who = encode_with(table.annotators, known, "the annotators of the labels")
    order = encode_with(table.classes, classes, "the classes of the labels")
    matrices: NDArray[Any] = arrays["confusion"][who][:, order][:, :, order]
    return matrices


@contextmanager
def _resumable(ctx: click.Context, checkpoint: Path) -> Iterator[None]:
    """Add to an interrupt how to resume."""
    try:
        yield
    except ProcessLostError as error:
        # A training adds how to resume it by the same call.
        reason = error.__cause__ if isinstance(error.__cause__, ProcessLostError) else error
        again = _how_to_resume(ctx, checkpoint)
        raise ProcessLostError(f"{str(reason).rstrip('.')}; {again}") from None
    except KeyboardInterrupt as interrupt:
        if not checkpoint.exists():
            # An encoding says what it keeps.
            said = str(interrupt) or "Interrupted; there was nothing to save yet."
            raise KeyboardInterrupt(said) from None
        raise KeyboardInterrupt(f"Interrupted; {_how_to_resume(ctx, checkpoint)}") from None


def _how_to_resume(ctx: click.Context, checkpoint: Path) -> str:
    if not checkpoint.exists():
        return "nothing was saved yet, so start again."
    command = resume_command(ctx.meta["annotrace.arguments"])
    return f"the training is saved in {checkpoint}. Resume with: {command}"
