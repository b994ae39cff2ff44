"""`annotrace aggregate`: the truth from labels alone."""

from __future__ import annotations

import json
import shlex
import warnings
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
from annotrace.cli.tables import print_accuracy, print_annotators, print_diagnosis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
@click.option("--seed", default=0, show_default=True, help="Breaks ties.")
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
    frame = aggregation.annotators_
    _write(out, aggregation, frame, name)
    where = write_run_report(aggregation, out, report, anonymous=anonymous)
    if not quiet:
        _tell(aggregation, frame, name, out, where)


def _fit(aggregation: Aggregation, table: LabelTable, gold: NDArray[np.int32] | None) -> None:
    if table.labels_per_item().max(initial=0) < 2 and gold is None:
        click.echo(
            "Warning: no item has two labels, so labels alone cannot tell who is right, and are "
            "given back as they are. With features, `annotrace fit` can.",
            err=True,
        )
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        aggregation.fit(table, gold=gold)
    for warning in raised:
        said = str(warning.message).replace("`max_iter`", "--max-iter")
        click.echo(f"Warning: {said}", err=True)


def _write(out: Path, aggregation: Aggregation, frame: Any, name: str) -> None:
    from annotrace.labels.writing import replacing, write_csv
    from annotrace.methods.runs import describe_diagnosis, write_classes, write_confusion

    table = aggregation.table_
    out.mkdir(parents=True, exist_ok=True)
    # A classifier of an earlier run does not belong to these labels.
    (out / "model.safetensors").unlink(missing_ok=True)
    write_classes(
        out / "truth.csv",
        table.items.tolist(),
        table.classes,
        aggregation.posterior_,
        labels=aggregation.predict(),
        confidence=aggregation.confidence_,
    )
    write_csv(frame, out / "annotators.csv")
    write_confusion(out, table, aggregation.confusion_)
    table.write(out / "labels.parquet")
    with replacing(out / "run.json") as file:
        described = _describe(aggregation, name) | {"diagnosis": describe_diagnosis(aggregation)}
        file.write(json.dumps(described, indent=1).encode() + b"\n")


def _describe(aggregation: Aggregation, name: str) -> dict[str, Any]:
    from annotrace.methods.runs import versions

    table = aggregation.table_
    return {
        "format": 1,
        "kind": "aggregation",
        "method": name,
        "counts": {
            "items": table.n_items,
            "annotators": table.n_annotators,
            "labels": table.n_labels,
            "classes": table.n_classes,
        },
        "iterations": aggregation.n_iter_,
        "converged": aggregation.converged_,
        "ties": int(aggregation.ties_.sum()),
        "learned_truth": bool(aggregation._learned().any()),
        "params": aggregation.settings,
        "prior": aggregation.prior_.tolist(),
        "objective": aggregation.objective_.tolist(),
        "versions": versions(),
    }


def _tell(aggregation: Aggregation, frame: Any, name: str, out: Path, where: str) -> None:
    from annotrace.labels.vocabulary import look_up

    table = aggregation.table_
    print_annotators(frame)
    print_accuracy(aggregation, {name: look_up(aggregation.predict(), table.classes)}, seed=0)
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
