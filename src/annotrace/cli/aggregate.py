"""`annotrace aggregate`: the truth from labels alone."""

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
from annotrace.cli.tables import print_accuracy, print_annotators, print_diagnosis
from annotrace.cli.warned import telling_warnings

if TYPE_CHECKING:
    from annotrace.aggregation import Aggregation
    from annotrace.labels import LabelTable


@click.command(short_help="Find the truth from labels alone, without features or images.")
@label_options
@out_options("RUN", "Folder to write the run to.")
@click.option(
    "--method",
    metavar="NAME",
    help="hierarchical (the default), majority, dawid-skene, one-coin, pooled, glad, mace, wawa "
    "or weighted-vote.",
)
@learn_truth_option
@click.option("--max-iter", type=click.IntRange(min=1), help="Iterations at most.")
@seed_option("Breaks ties.")
@report_options
@click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong.")
def aggregate(
    labels: LabelFile,
    out: Path,
    overwrite: bool,
    method: str | None,
    learn_truth: bool,
    max_iter: int | None,
    seed: int,
    report: bool,
    anonymous: bool,
    quiet: bool,
) -> None:
    """Find the likeliest class of each item, and how far each annotator can be trusted.

    From the labels alone: where there are features or images too, `annotrace fit` learns more.
    LABELS is a table of who gave which label to what, as in `annotrace fit`.

    RUN becomes a folder: truth.csv (item, label, confidence, the probability of every class),
    annotators.csv (number of labels, skill with its 90 % interval, flags), confusion.npz (who
    takes what for what), labels.parquet (the labels, for `annotrace next`), and report.html (all
    of it, for people). The verdict says whether the labels show the truth at all.

    \b
    Examples:
      annotrace aggregate labels.csv --out run
      annotrace aggregate labels.csv --method dawid-skene --out run
      annotrace aggregate answers.csv --skip unsure --truth gold --out run
    """
    from annotrace.aggregation import DEFAULT, make

    check_folder(out, RUN_FILES, overwrite)
    name = method or DEFAULT
    aggregation = make(name, random_state=seed)
    if max_iter is not None:
        aggregation.max_iter = max_iter
    table, layout = labels.read()
    if not quiet:
        click.echo(describe_labels(table, layout, learn_truth))
    _fit(aggregation, table, known_truth(table) if learn_truth else None)
    aggregation.save(out)
    where = write_run_report(aggregation, out, report, anonymous=anonymous)
    if not quiet:
        _tell(aggregation, name, out, where)


def _fit(aggregation: Aggregation, table: LabelTable, gold: dict[Any, Any] | None) -> None:
    if table.labels_per_item().max(initial=0) < 2 and gold is None:
        click.echo(
            "Warning: no item has two labels, so labels alone cannot tell who is right, and are "
            "given back as they are. With features, `annotrace fit` can.",
            err=True,
        )
    with telling_warnings("max_iter"):
        aggregation.fit(table, gold=gold)


def _tell(aggregation: Aggregation, name: str, out: Path, where: str) -> None:
    from annotrace.labels.vocabulary import look_up
    from annotrace.seeds import seed_of

    table = aggregation.table_
    print_annotators(aggregation.annotators_)
    chosen = {name: look_up(aggregation.predict(), table.classes)}
    print_accuracy(aggregation, chosen, seed_of(aggregation.random_state))
    print_diagnosis(aggregation)
    click.echo(f"\nAgreement (Krippendorff's alpha: 1 perfect, 0 chance): {_agreement(table)}")
    if ties := int(aggregation.ties_.sum()):
        click.echo(f"{ties:,} items are ties, broken by --seed.")
    files = "truth.csv, annotators.csv, confusion.npz and labels.parquet"
    click.echo(f"Wrote {out}: {files}. {where}".rstrip())
    click.echo(f"Next, who should label what: annotrace next {shlex.quote(str(out))} --budget 100")


def _agreement(table: LabelTable) -> str:
    from annotrace.diagnosis import krippendorff_alpha

    if table.labels_per_item().max(initial=0) < 2:
        return "unknown, no item has two labels"
    return f"{krippendorff_alpha(table):.3f}"
