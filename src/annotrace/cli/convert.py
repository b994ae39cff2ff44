"""`annotrace convert`: exports of labelling tools as a table with one row per label."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from annotrace.cli.label_files import LabelFiles, describe_labels
from annotrace.cli.limits import ReadingCommand
from annotrace.cli.options import label_options, out_options, quiet_option, raw_option
from annotrace.cli.output import check_file


@click.command(
    cls=ReadingCommand, short_help="Convert the export of a labelling tool to a table of labels."
)
@label_options
@out_options("FILE", "File to write: .csv, .tsv or .jsonl (.gz may follow), or .parquet.")
@raw_option
@quiet_option
def convert(labels: LabelFiles, out: Path, overwrite: bool, raw: bool, quiet: bool) -> None:
    """Write the labels of one or more files with one row per label: item, annotator, label, truth.

    LABELS are exports of Label Studio (JSON, JSON-MIN, CSV), Prodigy, Argilla, doccano, CVAT,
    Labelbox, SageMaker Ground Truth or peerannot, or tables of any kind that `annotrace fit` reads.
    The format is detected from the content; a folder stands for the files in it. Answers that were
    skipped, cancelled or not submitted are left out and counted.

    Some formats lack information: add --question if there were several questions, and
    --annotator-name if no annotator is named. If a tool writes one file per annotator, give them
    all, named after the annotators. --item names a field other than the usual one.

    \b
    Examples:
      annotrace convert project-7.json --out labels.csv
      annotrace convert project-7.json --question sentiment --item image --out labels.csv
      annotrace convert ann.jsonl bob.jsonl --out labels.parquet
      annotrace convert mine.jsonl --annotator-name ann --out labels.csv
      annotrace convert labels.sqlite --query "SELECT * FROM answers" --out labels.csv
    """
    check_file(out, overwrite)
    table, used = labels.read()
    table.write(out, raw=raw)
    if not quiet:
        click.echo(describe_labels(table, used))
        click.echo(f"Wrote {shlex.quote(str(out))}.")
