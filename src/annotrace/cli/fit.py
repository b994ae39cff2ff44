"""`annotrace fit`: labels and features in, a run out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.folders import RUN_FILES, check_folder, out_options
from annotrace.cli.label_options import (
    LabelFile,
    describe_labels,
    known_truth,
    label_options,
    learn_truth_option,
)
from annotrace.cli.report import report_options, write_run_report
from annotrace.cli.seeds import seed_option
from annotrace.cli.source_options import read_source, source_options
from annotrace.cli.tables import print_accuracy, print_annotators, print_diagnosis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from annotrace.data import ItemSource
    from annotrace.labels import LabelTable
    from annotrace.methods import CrowdEstimator

CHECKPOINT = "checkpoint.pt"
# A batch of larger ones fits into no memory.
LARGEST_IMAGE = 2048


@click.command(short_help="Learn the truth, a classifier and the annotators from labels.")
@label_options
@source_options
@out_options("RUN", "Folder to write the run to.")
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="How to learn: auto, crossfit, trace, gem, mbem, single-cm, wdn, soft-bootstrap, vanilla, "
    "two-stage or oracle. The default, auto, is the recommended recipe.",
)
@click.option(
    "--confusion",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For --method oracle: the true matrices, as the confusion.npz of `annotrace simulate`.",
)
@learn_truth_option
@click.option(
    "--keep-unlabelled",
    is_flag=True,
    help="Keep features of items that have no label: predicted, not learned from.",
)
@click.option(
    "--backbone",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="The network: mlp, linear, cnn, cnn-wide, resnet9 or resnet50; auto takes mlp for "
    "features and cnn for images.",
)
@click.option("--epochs", type=int, help="Passes over the items; each method has its default.")
@click.option("--batch-size", type=int, help="Items a step.")
@click.option("--lr", type=float, help="Learning rate of the network.")
@seed_option("The same seed gives the same run.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
@click.option(
    "--image-size",
    type=click.IntRange(1, LARGEST_IMAGE),
    default=64,
    show_default=True,
    help="Images are resized to a square of so many pixels.",
)
@click.option("--grey", is_flag=True, help="Read images as grey.")
@report_options
@click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong.")
@click.option("--resume", is_flag=True, help="Go on with a training that was stopped by Ctrl-C.")
@click.pass_context
def fit(
    ctx: click.Context,
    /,
    labels: LabelFile,
    features: Path | None,
    images: Path | None,
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
    quiet: bool,
    resume: bool,
    **settings: Any,
) -> None:
    """Learn the true labels, a classifier, and how far each annotator can be trusted.

    LABELS is a table of who gave which label to what: csv, tsv, jsonl or parquet with a row a
    label (columns such as item, annotator, label), or a csv, npy or npz with a row an item and
    a column an annotator. The columns are found by their usual names, or named with --item,
    --annotator and --label. Exports of labelling tools are taken too, as in `annotrace convert`;
    - stands for standard input.

    RUN becomes a folder: truth.csv (the likeliest class of each item), annotators.csv (how
    skilled each is, and how sure that is), confusion.npz (who takes what for what), report.html
    (all of it, for people), and the classifier, for `annotrace predict`. The verdict says
    whether the labels show the truth.

    \b
    Examples:
      annotrace fit labels.csv --features features.npz --out run
      annotrace fit labels.csv --images photos/ --image-size 96 --out run
      annotrace fit answers.tsv --item photo --annotator who --label said \\
          --skip unsure --features features.parquet --out run
      annotrace fit labels.csv --features features.npz --out run --resume

    Ctrl-C stops and keeps what was learned: the same command with --resume goes on from there.
    """
    checkpoint = _check_out(out, overwrite, resume)
    _check_confusion(confusion, method)
    model = _make(method, settings, verbose=not quiet, checkpoint=checkpoint)
    table, layout = labels.read()
    size = (image_size, image_size)
    source = read_source(features, images, size, not grey, labels.columns["item"])
    if keep_unlabelled:
        source, table = _keep_unlabelled(source, table)
    if method == "oracle":
        model.set_params(confusion=_true_matrices(confusion, table))
    if not quiet:
        click.echo(describe_labels(table, layout, learn_truth))
    try:
        checkpoints = model._fit_with_checkpoints(
            source, table, gold=known_truth(table) if learn_truth else None
        )
        model.save(out)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_how_to_go_on(ctx, checkpoint)) from None
    checkpoints.clear()
    where = write_run_report(model, out, report, anonymous=anonymous, images=images)
    if not quiet:
        _tell(model, out, "--features" if images is None else "--images", where)


def _check_out(out: Path, overwrite: bool, resume: bool) -> Path:
    """Check the folder to write to, and give the checkpoint in it."""
    from annotrace.errors import RunError

    checkpoint = out / CHECKPOINT
    if not (resume and checkpoint.exists()):
        check_folder(out, RUN_FILES, overwrite)
    if checkpoint.exists() and not resume:
        raise RunError(
            f"{checkpoint} is from a training that was stopped; add --resume to go on with it, "
            "or delete it to begin anew."
        )
    if resume and not checkpoint.exists():
        raise RunError(f"There is no {checkpoint} to go on from; leave out --resume.")
    return checkpoint


def _check_confusion(confusion: Path | None, method: str) -> None:
    from annotrace.errors import InputError

    if confusion is not None and method != "oracle":
        raise InputError(
            f"--confusion is for --method oracle; leave it out, for {method} learns the matrices."
        )


def _keep_unlabelled(source: ItemSource, table: LabelTable) -> tuple[ItemSource, LabelTable]:
    from annotrace.data import ImageFolder
    from annotrace.errors import InputError

    if isinstance(source, ImageFolder):
        source = source.matching(table.items)
    if source.items is None or table.positional:
        raise InputError(
            "--keep-unlabelled matches items by name: give features with names "
            "(npz with X and items) and labels with an item column."
        )
    return source, table.with_items(source.items)


def _make(method: str, settings: dict[str, Any], verbose: bool, checkpoint: Path) -> CrowdEstimator:
    from annotrace.methods import make

    seed = settings.pop("seed")
    return make(method, **settings, random_state=seed, verbose=verbose, checkpoint=checkpoint)


def _true_matrices(path: Path | None, table: LabelTable) -> NDArray[Any]:
    """Read matrices, shape (n_annotators, n_classes, n_classes), in the order of the table."""
    from annotrace.errors import InputError
    from annotrace.labels.files import load_arrays, open_file
    from annotrace.labels.vocabulary import as_names, encode_with

    if path is None:
        raise InputError("--method oracle is given the true matrices: --confusion FILE.")
    with open_file(path) as file:
        arrays = load_arrays(file, str(path))
    if not {"confusion", "annotators", "classes"} <= set(arrays):
        raise InputError(f"{path} must have the arrays confusion, annotators and classes.")
    who = encode_with(table.annotators, as_names(arrays["annotators"]), "annotators are")
    what = encode_with(table.classes, as_names(arrays["classes"]), "classes are")
    matrices: NDArray[Any] = arrays["confusion"][who][:, what][:, :, what]
    return matrices


def _how_to_go_on(ctx: click.Context, checkpoint: Path) -> str:
    if not checkpoint.exists():
        return "Stopped; there was nothing to save yet."
    typed = [word for word in ctx.meta["annotrace.arguments"] if word != "--resume"]
    command = shlex.join(["annotrace", *typed, "--resume"])
    return f"Stopped; what was learned is saved in {checkpoint}. Go on with: {command}"


def _tell(model: CrowdEstimator, out: Path, given: str, where: str) -> None:
    from annotrace.seeds import seed_of

    print_annotators(model.annotators_)
    chosen = {model.method: model.posterior_.argmax(axis=1)}
    print_accuracy(model, chosen, seed_of(model.random_state))
    print_diagnosis(model)
    click.echo(f"\nWrote {out}: truth.csv, annotators.csv and the classifier. {where}")
    click.echo(f"Next: annotrace predict {shlex.quote(str(out))} {given} NEW --out new.csv")
