"""`annotrace aggregate`: the true classes from labels alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.label_files import LabelFiles, describe_labels, gold_from_truth
from annotrace.cli.limits import ReadingCommand
from annotrace.cli.options import (
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
from annotrace.cli.together import read_labels, together

if TYPE_CHECKING:
    from annotrace.aggregation import Aggregation
    from annotrace.labels import LabelTable


@click.command(
    cls=ReadingCommand,
    short_help="Estimate true classes from labels alone, without features or images.",
)
@label_options
@out_options("RUN", "Folder to write the run to.")
@click.option(
    "--method",
    metavar="NAME",
    help="ensemble (the default), hierarchical, majority, dawid-skene, one-coin, pooled, glad, "
    "mace, wawa or weighted-vote.",
)
@click.option(
    "--structure",
    metavar="NAME",
    help="For --method dawid-skene: the confusion matrices. full, pooled, or with many classes "
    "per-class, low-rank or taxonomy; auto chooses by held-out labels.",
)
@taxonomy_option
@learn_truth_option
@click.option("--max-iter", type=click.IntRange(min=1), help="Maximum number of iterations.")
@seed_option("Breaks ties.")
@report_options
@raw_option
@quiet_option
def aggregate(
    labels: LabelFiles,
    out: Path,
    overwrite: bool,
    method: str | None,
    structure: str | None,
    taxonomy: str | None,
    learn_truth: bool,
    max_iter: int | None,
    seed: int,
    report: bool,
    anonymous: bool,
    raw: bool,
    quiet: bool,
) -> None:
    """Estimate the class of each item, and how reliable each annotator is, from labels alone.

    If there are features or images too, `annotrace fit` is more accurate. LABELS is a table of
    items, annotators and labels, as in `annotrace fit`.

    RUN becomes a folder: truth.csv (item, label, confidence, the probability of every class),
    annotators.csv (number of labels, skill with its 90 % interval, flags), confusion.npz (confusion
    matrices), and report.html (a page for managers). The verdict says whether the labels identify
    the true classes.

    \b
    Examples:
      annotrace aggregate labels.csv --out run
      annotrace aggregate labels.csv --method dawid-skene --out run
      annotrace aggregate labels.csv --method dawid-skene --structure auto \\
          --taxonomy tree.csv --out run
      annotrace aggregate answers.csv --skip unsure --truth gold --out run
      torchrun --nproc-per-node 2 -m annotrace aggregate labels.csv --out run
    """
    from annotrace.aggregation.together import check_together
    from annotrace.progress import show_stages

    with (
        together() as processes,
        new_run(out, overwrite, processes=processes),
        show_stages(processes.is_first and not quiet),
    ):
        aggregation = make_aggregation(method, seed, max_iter)
        _set_structure(aggregation, {"structure": structure, "taxonomy": taxonomy})
        check_together(aggregation, processes)
        table, layout = read_labels(labels, processes)
        if table is not None and not quiet:
            click.echo(describe_labels(table, layout, learn_truth))
        gold = gold_from_truth(table) if table is not None and learn_truth else None
        fit_aggregation(aggregation, table, gold)
        processes.leave()
        if table is None:
            return
        where = save_with_report(aggregation, out, report, raw=raw, anonymous=anonymous)
    if not quiet:
        print_result(aggregation)
        _print_end(aggregation, out, where)


def make_aggregation(method: str | None, seed: int, max_iter: int | None = None) -> Aggregation:
    """Make an aggregation by name, the default one for None."""
    from annotrace.aggregation import DEFAULT, make

    aggregation = make(method or DEFAULT, random_state=seed)
    # Methods that do not iterate have no such parameter.
    if max_iter is not None and "max_iter" in aggregation.get_params():
        aggregation.set_params(max_iter=max_iter)
    return aggregation


def _set_structure(aggregation: Aggregation, given: dict[str, Any]) -> None:
    from annotrace.errors import InputError

    params = {name: value for name, value in given.items() if value is not None}
    for name in sorted(params.keys() - aggregation.get_params()):
        raise InputError(f"--{name} applies to --method dawid-skene, not to {aggregation.method}.")
    aggregation.set_params(**params)


def fit_aggregation(
    aggregation: Aggregation, table: LabelTable | None, gold: dict[Any, Any] | None
) -> None:
    """Fit an aggregation, and print warnings; the first process has the table and the result."""
    from annotrace.aggregation.together import fit_together
    from annotrace.distributed import current

    if table is not None and table.labels_per_item().max(initial=0) < 2 and gold is None:
        click.echo(
            "Warning: no item has two labels, so that labels alone cannot show who is correct; "
            "they are returned unchanged. With features, use `annotrace fit`.",
            err=True,
        )
    with echo_warnings("max_iter"):
        fit_together(aggregation, table, gold, current())


def _print_end(aggregation: Aggregation, out: Path, where: str) -> None:
    from annotrace.diagnosis import krippendorff_alpha

    agreement = "unknown, no item has two labels"
    if aggregation.table_.labels_per_item().max(initial=0) >= 2:
        agreement = f"{krippendorff_alpha(aggregation.table_):.3f}"
    click.echo(f"\nAgreement (Krippendorff's alpha: 1 perfect, 0 chance): {agreement}")
    if ties := int(aggregation.ties_.sum()):
        click.echo(f"{ties:,} items are ties, broken by --seed.")
    click.echo(f"Wrote {out}: truth.csv, annotators.csv and confusion.npz. {where}".rstrip())
    run = shlex.quote(str(out))
    click.echo(f"Next, choose who should label what: annotrace next {run} --budget 100")
