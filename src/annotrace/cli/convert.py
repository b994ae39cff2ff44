"""`annotrace convert`: what a labelling tool exports, as a table with a row a label."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from annotrace.cli.folders import check_file, out_options
from annotrace.cli.label_options import LabelFile, describe_labels, label_options


@click.command(short_help="Turn the export of a labelling tool into a table of labels.")
@label_options
@out_options("FILE", "File to write: .csv, .tsv or .jsonl (.gz may follow), or .parquet.")
@click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong.")
def convert(labels: LabelFile, out: Path, overwrite: bool, quiet: bool) -> None:
    """Write the labels of one or more files with a row a label: item, annotator, label, truth.

    LABELS are what Label Studio (JSON, JSON-MIN), Prodigy, Argilla, doccano, CVAT, Labelbox,
    SageMaker Ground Truth or peerannot export, or tables of any kind that `annotrace fit` takes.
    The format is told by the content; a folder stands for the files in it. Answers that were
    skipped, cancelled or not yet submitted are left out, and counted.

    What a format cannot say is asked for: --question where people answered several,
    --annotator-name where nobody is named. Where a tool writes one file for each annotator, give
    them all, named after the annotators. --item names a field other than the usual one.

    \b
    Examples:
      annotrace convert project-7.json --out labels.csv
      annotrace convert project-7.json --question sentiment --item image --out labels.csv
      annotrace convert ann.jsonl bob.jsonl --out labels.parquet
      annotrace convert mine.jsonl --annotator-name ann --out labels.csv
    """
    check_file(out, overwrite)
    table, used = labels.read()
    table.write(out)
    if not quiet:
        click.echo(describe_labels(table, used))
        click.echo(f"Wrote {shlex.quote(str(out))}.")
