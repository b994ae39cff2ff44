"""`annotrace next`: who should label what next, or what an expert should check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.label_files import similar_names
from annotrace.cli.next_gold import GOLD_FILE, plan_gold
from annotrace.cli.options import PATH, overwrite_option, quiet_option, raw_option, seed_option
from annotrace.cli.output import MAX_ROWS, check_file, print_table

if TYPE_CHECKING:
    from annotrace.allocation.available import AvailableAnnotators
    from annotrace.labels import LabelTable

FILE = "next.csv"
COLUMNS = ("annotator", "capacity", "cost")
MAX_NAMES = 5
_GIVEN = click.core.ParameterSource.COMMANDLINE


@click.command("next", short_help="Choose who should label, or an expert check, what next.")
@click.argument("run", type=PATH)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    help="The total cost: the number of labels, if each costs 1. With --gold, the number of items.",
)
@click.option(
    "--gold",
    is_flag=True,
    help="Choose items for an expert to check instead of labels to collect.",
)
@click.option(
    "--width",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="With --gold: the desired width of 90 % intervals of accuracy. Says how many items they "
    "need, and chooses that many at random.",
)
@click.option(
    "--annotators",
    type=PATH,
    metavar="FILE",
    help="csv of those who can be asked: annotator, and optionally capacity (maximum number of "
    "labels) and cost (of a label). It may have new names. By default all of the run.",
)
@click.option(
    "--capacity",
    type=click.IntRange(min=0),
    help="Maximum number of labels by each annotator, where the file has none.",
)
@click.option(
    "--at-least",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Annotators with fewer labels are asked first, until they have this many.",
)
@click.option(
    "--per-item",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Maximum number of new labels per item.",
)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE",
    help=f"csv file to write.  [default: {FILE} in RUN, {GOLD_FILE} with --gold]",
)
@seed_option("Draws the random items of --gold.")
@overwrite_option
@raw_option
@quiet_option
@click.pass_context
def next_labels(
    context: click.Context,
    run: Path,
    budget: float | None,
    gold: bool,
    width: float | None,
    annotators: Path | None,
    capacity: int | None,
    at_least: int,
    per_item: int,
    out: Path | None,
    seed: int,
    overwrite: bool,
    raw: bool,
    quiet: bool,
) -> None:
    """Choose the labels with the highest expected gain, given the results of RUN.

    RUN is a folder that `annotrace fit` or `annotrace aggregate` wrote. The csv has one row per
    label to collect, the most useful first: item, annotator, priority, expected_gain (how much the
    probability of the item's true class is expected to rise), and the reason in words. Nobody is
    asked for an item that they have labelled. Fit again with the new labels before the next batch.

    With --gold, the csv has the items that an expert should check: item, priority, part and reason.
    The random part measures accuracy; the doubtful part, where votes or the model are least sure,
    improves it. Fit again with the checked classes as gold items (--learn-truth); intervals of
    accuracy are valid if gold items are random.

    \b
    Examples:
      annotrace next run --budget 500
      annotrace next run --budget 500 --capacity 50 --out next.csv
      annotrace next run --budget 80.5 --annotators team.csv --per-item 2
      annotrace next run --gold --budget 100
      annotrace next run --gold --width .05
    """
    from annotrace.allocation import allocate
    from annotrace.allocation.available import AvailableAnnotators
    from annotrace.labels.writing import write_csv
    from annotrace.methods import load

    _check_options(context, gold, budget, width)
    out = out or run / (GOLD_FILE if gold else FILE)
    if run.is_dir():
        check_file(out, overwrite)
    model = load(run, device="cpu")
    if gold:
        plan_gold(model, budget, width, seed, out, raw=raw, quiet=quiet)
        return
    assert budget is not None
    available, cost = read_available(annotators, capacity)
    options = {"available": available, "cost": cost, "at_least": at_least, "per_item": per_item}
    frame = allocate(model, budget, **options)
    write_csv(frame, out, raw=raw)
    if quiet:
        return
    table = model.result_.table
    asked = AvailableAnnotators(table.annotators, available, cost)
    for line in _describe_new(table, asked):
        click.echo(line)
    if frame.is_empty():
        click.echo(f"Wrote {out} without rows: {_why_empty(table, asked, budget)}.")
    else:
        _print_plan(frame, budget, out)


def _check_options(
    context: click.Context, gold: bool, budget: float | None, width: float | None
) -> None:
    """Raise a `UsageError` if options do not go together."""
    if not gold and width is not None:
        raise click.UsageError("--width goes with --gold.")
    if budget is None and width is None:
        needed = "--budget, --width or both" if gold else "--budget"
        raise click.UsageError(f"Missing option: give {needed}.")
    if not gold:
        return
    if budget is not None and budget != int(budget):
        raise click.UsageError("With --gold, --budget is a number of items: give a whole number.")
    of_labels = ("annotators", "capacity", "at_least", "per_item")
    given = [name for name in of_labels if context.get_parameter_source(name) is _GIVEN]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} does not go with --gold.")


def read_available(path: Path | None, capacity: int | None) -> tuple[Any, Any]:
    """Read who can be asked; return `available` and `cost` as `annotrace.allocate` takes them."""
    if path is None:
        return capacity, 1.0
    from annotrace.errors import InputError
    from annotrace.labels.delimited import read_delimited
    from annotrace.labels.files import read_bytes

    frame, rows = read_delimited(read_bytes(path), str(path))
    frame.columns = _check_columns(frame.columns, path)
    names = frame["annotator"].fill_null("").to_list()
    if "" in names:
        row = rows[names.index("")]
        raise InputError(f"{path}, row {row}, column 'annotator' is empty. Every row needs a name.")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"{path}: {twice!r} occurs more than once; keep one row for each name.")
    limits = _numbers(frame, "capacity", int, path, rows)
    costs = _numbers(frame, "cost", float, path, rows)
    available = {
        name: capacity if limit is None else limit
        for name, limit in zip(names, limits, strict=True)
    }
    return available, {n: c for n, c in zip(names, costs, strict=True) if c is not None}


def _check_columns(columns: list[str], path: Path) -> list[str]:
    """Return the names of the columns without capitals and outer spaces."""
    from annotrace.errors import InputError, first_few
    from annotrace.labels.columns import check_distinct

    names = [column.strip().casefold() for column in columns]
    if "annotator" not in names:
        raise InputError(f"{path}: expected a column 'annotator', but it has {columns}.")
    unknown = [column for column, name in zip(columns, names, strict=True) if name not in COLUMNS]
    if unknown:
        raise InputError(
            f"{path}: unknown column {first_few(unknown)}. The columns may be "
            f"{', '.join(COLUMNS)}; rename it or leave it out."
        )
    check_distinct(names, str(path))
    return names


def _numbers(frame: Any, column: str, kind: type, path: Path, rows: Any) -> list[Any]:
    from annotrace.errors import InputError

    if column not in frame.columns:
        return [None] * len(frame)
    values: list[Any] = []
    for row, text in zip(rows, frame[column].to_list(), strict=True):
        try:
            values.append(kind(text) if text else None)
        except ValueError:
            raise InputError(
                f"{path}, row {row}, column {column!r}: expected a "
                f"{'whole number' if kind is int else 'number'}, or nothing, but got {text!r}."
            ) from None
    return values


def _describe_new(table: LabelTable, available: AvailableAnnotators) -> Iterator[str]:
    """Yield notes about annotators who are not in the labels."""
    from annotrace.errors import count, first_few

    new = [str(name) for name in available.names[table.n_annotators :].tolist()]
    if not new:
        return
    similar = similar_names(new, table.annotators.tolist())
    for name, known in list(similar.items())[:MAX_NAMES]:
        yield (
            f"Note: {name!r} is not in the labels, but {known!r} is: write them alike if they are "
            "the same."
        )
    yield (
        f"{count(len(new), 'new annotator')} without labels ({first_few(new, MAX_NAMES)}), assumed "
        "to be like the average annotator."
    )


def _why_empty(table: LabelTable, available: AvailableAnnotators, budget: float) -> str:
    """Return why the plan has no labels."""
    import numpy as np

    pairs = np.unique(table.item.astype(np.int64) * table.n_annotators + table.annotator)
    n_items = np.bincount(pairs % table.n_annotators, minlength=len(available.names))
    free = available.capacity > 0
    if not free.any():
        return "nobody can be asked, since every capacity is 0"
    able = free & (n_items < table.n_items)
    if not able.any():
        return "everybody who can be asked has labelled every item; add others with --annotators"
    cheapest = available.cost[able].min()
    if cheapest > budget:
        return f"the cheapest label costs {cheapest:g}, and the budget is {budget:g}"
    return "no possible label would gain anything"


def _print_plan(frame: Any, budget: float, out: Path) -> None:
    import polars as pl

    from annotrace.errors import count

    asked = frame.group_by("annotator", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("labels to give"),
        pl.col("expected_gain").mean().alias("mean expected gain"),
    )
    asked = asked.sort("labels to give", descending=True, maintain_order=True)
    title = "Who should label next"
    if len(asked) > MAX_ROWS:
        title += f" ({MAX_ROWS} of {len(asked):,} annotators)"
    print_table(asked.columns, asked.head(MAX_ROWS).rows(), title)
    first = frame.row(0, named=True)
    click.echo(f"\nFirst: {first['item']}, by {first['annotator']}: {first['reason']}.")
    total = f"{count(len(frame), 'label')} of {count(frame['item'].n_unique(), 'item')}"
    of_budget = f", of a budget of {budget:g}" if len(frame) < budget else ""
    click.echo(f"Wrote {out}: {total} to collect{of_budget}.")
