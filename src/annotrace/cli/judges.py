"""`annotrace judges`: a panel of judges, such as LLMs, against gold or people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.label_files import LabelFiles, describe_labels
from annotrace.cli.limits import ReadingCommand
from annotrace.cli.options import (
    PATH,
    label_options,
    out_options,
    quiet_option,
    raw_option,
    seed_option,
)
from annotrace.cli.output import MAX_ROWS, new_run, print_table

if TYPE_CHECKING:
    from annotrace.judges import JudgePanel

# What tells a separator of model and prompt from the name of a file.
LONGEST_SEPARATOR = 3


@click.command(
    cls=ReadingCommand,
    short_help="Evaluate judges, such as LLMs, against gold labels or people.",
)
@label_options
@click.option(
    "--gold",
    type=PATH,
    metavar="FILE",
    help="csv of known classes: item, and truth or label. By default the --truth column.",
)
@click.option(
    "--kind",
    metavar="COLUMN|FILE",
    help="Who is a person and who an llm: a column of LABELS, or a csv of annotator, kind. By "
    "default all are judges.",
)
@click.option(
    "--cost", type=PATH, metavar="FILE", help="csv of annotator, cost (of one label; default 1)."
)
@click.option(
    "--model-of",
    metavar="SEPARATOR|FILE",
    help="Judges that are runs of one model: a csv of annotator, model, or what separates model "
    'and prompt in their names, such as "/".',
)
@click.option("--time", metavar="COLUMN", help="Column of LABELS by which drift is tested.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.2,
    show_default=True,
    help="Alternative annotator test: how much worse than a person a judge may be. 0.2 for "
    "experts, 0.15 for trained people, 0.1 for crowds.",
)
@click.option(
    "--graded",
    is_flag=True,
    help="In that test, compare classes by distance, as they are numbers such as 1 to 5.",
)
@out_options("FOLDER", "Folder to write to.", "judges")
@seed_option("Assigns gold items to folds.")
@click.option("--report/--no-report", default=True, help="Write judges.html.  [default: report]")
@raw_option
@quiet_option
def judges(
    labels: LabelFiles,
    gold: Path | None,
    kind: str | None,
    cost: Path | None,
    model_of: str | None,
    time: str | None,
    epsilon: float,
    graded: bool,
    out: Path,
    overwrite: bool,
    seed: int,
    report: bool,
    raw: bool,
    quiet: bool,
) -> None:
    """Evaluate a panel of judges, such as LLMs, against gold labels or people.

    With --gold: the accuracy of each judge with its 90 % interval, whether the panel's vote beats
    its best member, the smallest panel that is as good, how many independent votes the judges are
    worth, and the share of each class, corrected for their errors. Gold items should be drawn at
    random from all items.

    With --kind: how far judges agree with people, beside people's agreement with each other, and
    which judge may stand in for a person (the alternative annotator test).

    FOLDER gets judges.csv, rates.csv, panels.csv, prevalence.csv, confusion.npz, people.csv,
    replacement.csv, periods.csv, drift.csv and models.csv, as far as they are known, everything in
    judges.json, and judges.html, a page to read.

    \b
    Examples:
      annotrace judges labels.csv --gold gold.csv
      annotrace judges labels.csv --gold gold.csv --cost prices.csv --model-of /
      annotrace judges labels.csv --kind kind --epsilon 0.1 --out with-people
      annotrace judges labels.csv --truth gold --time month --overwrite
    """
    from annotrace.judges import evaluate
    from annotrace.judges.saving import FILES, REPORT, write_panel
    from annotrace.report import write_judges_report

    with new_run(out, overwrite, FILES):
        table, layout = labels.read()
        if not quiet:
            click.echo(describe_labels(table, layout))
        beside = _read_beside(labels, gold, kind, cost, model_of, time)
        panel = evaluate(table, **beside, epsilon=epsilon, graded=graded, random_state=seed)
        write_panel(panel, out, raw=raw)
        if report:
            write_judges_report(panel, out / REPORT)
    if not quiet:
        print_judges(panel)
        click.echo(f"\n{panel}\n\nWrote {out}: {_written(out, FILES)}.")


def print_judges(panel: JudgePanel) -> None:
    """Print what is known of each judge, by accuracy or agreement with people."""
    rows = panel.ranked()
    columns: dict[str, list[Any]] = {"judge": [row.judge for row in rows]}
    columns["labels"] = [row.n_labels for row in rows]
    if panel.n_gold:
        columns["gold"] = [row.n_gold for row in rows]
        for name in ("accuracy", "kappa"):
            columns |= _with_ends(name, [getattr(row, name) for row in rows])
        columns["adds"] = [row.adds.value for row in rows]
        if len({row.cost for row in rows}) > 1:
            columns["adds / cost"] = [row.adds_per_cost for row in rows]
    if panel.people_together is not None:
        columns |= _with_ends("with people", [row.people for row in rows])
        columns["wins"] = [row.winning_rate for row in rows]
    shown = list(zip(*columns.values(), strict=True))[:MAX_ROWS]
    title = "Judges"
    if len(rows) > MAX_ROWS:
        title += f" (the first {MAX_ROWS} of {len(rows):,}; all are in judges.csv)"
    print_table(list(columns), shown, title)


def _with_ends(name: str, estimates: list[Any]) -> dict[str, list[Any]]:
    return {
        name: [each.value if each.is_known else None for each in estimates],
        f"{name} 90 %": [
            f"{each.low:.3f}-{each.high:.3f}" if each.is_known else "" for each in estimates
        ],
    }


def _read_beside(
    labels: LabelFiles,
    gold: Path | None,
    kind: str | None,
    cost: Path | None,
    model_of: str | None,
    time: str | None,
) -> dict[str, Any]:
    """Read what is known beside the labels, as `annotrace.judges.evaluate` takes it."""
    from annotrace.labels.side_tables import read_by_annotator, read_gold
    from annotrace.limits import Limits

    limits = Limits(**labels.limits)
    beside: dict[str, Any] = {}
    if gold is not None:
        beside["gold"] = read_gold(gold, limits)
    if cost is not None:
        beside["cost"] = read_by_annotator(cost, "cost", limits)
    if model_of is not None:
        beside["model_of"] = model_of
        if len(model_of) > LONGEST_SEPARATOR or Path(model_of).is_file():
            beside["model_of"] = read_by_annotator(model_of, "model", limits)
    if kind is not None and Path(kind).is_file():
        beside["kind"] = read_by_annotator(kind, "kind", limits)
    elif kind is not None:
        beside["kind"] = labels.further_columns().by_annotator(kind)
    if time is not None:
        beside["time"] = labels.further_columns().by_label(time)
    return beside


def _written(folder: Path, names: tuple[str, ...]) -> str:
    return ", ".join(name for name in names if (folder / name).exists())
