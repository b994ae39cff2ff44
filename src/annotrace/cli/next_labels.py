"""`annotrace next`: who should label what next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.folders import check_file
from annotrace.cli.tables import SHOWN, print_table

if TYPE_CHECKING:
    from annotrace.allocation.people import People
    from annotrace.labels import LabelTable

FILE = "next.csv"
COLUMNS = ("annotator", "capacity", "cost")
NAMED = 5


@click.command("next", short_help="Choose who should label what next.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    required=True,
    help="What may be spent: the number of labels, where each costs 1.",
)
@click.option(
    "--annotators",
    "people",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="csv of those who can be asked: annotator, and if wanted capacity (labels at most) and "
    "cost (of a label). New names are newcomers. All of the run unless given.",
)
@click.option(
    "--capacity",
    type=click.IntRange(min=0),
    help="Labels by each annotator at most, where the file does not say.",
)
@click.option(
    "--at-least",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Annotators with fewer labels are asked first, until they have so many.",
)
@click.option(
    "--per-item",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="New labels of an item at most.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"csv file to write.  [default: {FILE} in RUN]",
)
@click.option("--overwrite", is_flag=True, help="Write over what an earlier command left there.")
@click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong.")
def next_labels(
    run: Path,
    budget: float,
    people: Path | None,
    capacity: int | None,
    at_least: int,
    per_item: int,
    out: Path | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Choose the labels that are expected to tell most of the truth, given what RUN has learned.

    RUN is a folder that `annotrace fit` or `annotrace aggregate` wrote. The csv has a row a label
    to ask for, the most useful first: item, annotator, priority, expected_gain (by how much the
    probability of the item's true class is expected to rise), and the reason in words. Nobody is
    asked for an item they have labelled. Learn again when the labels are in, and ask anew.

    \b
    Examples:
      annotrace next run --budget 500
      annotrace next run --budget 500 --capacity 50 --out next.csv
      annotrace next run --budget 80.5 --annotators people.csv --per-item 2
    """
    from annotrace.allocation import allocate
    from annotrace.allocation.people import People
    from annotrace.labels.writing import write_csv
    from annotrace.methods.runs import load

    out = out or run / FILE
    if run.is_dir():
        check_file(out, overwrite)
    model = load(run, device="cpu")
    available, cost = _read_people(people, capacity)
    frame = allocate(
        model,
        budget,
        cost=cost,
        available=available,
        at_least=at_least,
        per_item=per_item,
    )
    write_csv(frame, out)
    if not quiet:
        asked = People(model.table_.annotators, available, cost)
        for line in _describe_newcomers(model.table_, asked):
            click.echo(line)
        _tell(frame, budget, out, _nothing_to_ask(model.table_, asked, budget))


def _read_people(path: Path | None, capacity: int | None) -> tuple[Any, Any]:
    """Read who can be asked, as `annotrace.allocate` takes it: available, cost."""
    if path is None:
        return capacity, 1.0
    from annotrace.errors import InputError
    from annotrace.labels.files import read_bytes
    from annotrace.labels.spreadsheets import read_delimited

    frame, rows = read_delimited(read_bytes(path), str(path))
    frame.columns = _known(frame.columns, path)
    names = frame["annotator"].fill_null("").to_list()
    if "" in names:
        row = rows[names.index("")]
        raise InputError(f"{path}, row {row}, column 'annotator' is empty. Every row needs a name.")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"{path}: {twice!r} stands there more than once; keep one row for each.")
    limits = _numbers(frame, "capacity", int, path, rows)
    costs = _numbers(frame, "cost", float, path, rows)
    available = {
        name: capacity if limit is None else limit
        for name, limit in zip(names, limits, strict=True)
    }
    return available, {n: c for n, c in zip(names, costs, strict=True) if c is not None}


def _known(columns: list[str], path: Path) -> list[str]:
    """Give the names of the columns, told regardless of case and of spaces around."""
    from annotrace.errors import InputError, first_few
    from annotrace.labels.columns import check_distinct

    names = [column.strip().casefold() for column in columns]
    if "annotator" not in names:
        raise InputError(f"{path}: expected a column 'annotator', but it has {columns}.")
    unknown = [column for column, name in zip(columns, names, strict=True) if name not in COLUMNS]
    if unknown:
        raise InputError(
            f"{path}: not known: column {first_few(unknown)}. Known are {', '.join(COLUMNS)}; "
            "rename it or leave it out."
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


def _describe_newcomers(table: LabelTable, people: People) -> list[str]:
    """Tell who is not in the labels, and who may be somebody that is."""
    from annotrace.cli.look_alikes import look_alikes
    from annotrace.errors import first_few

    new = [str(name) for name in people.names[table.n_annotators :].tolist()]
    if not new:
        return []
    alike = look_alikes(new, table.annotators.tolist())
    notes = [
        f"Note: {name!r} is not in the labels, but {known!r} is: write them alike if they are the "
        "same."
        for name, known in list(alike.items())[:NAMED]
    ]
    said = "1 is" if len(new) == 1 else f"{len(new):,} are"
    return [
        *notes,
        f"Newcomers: {said} not in the labels ({first_few(new, NAMED)}), and taken to label as all "
        "together do until their own labels tell.",
    ]


def _nothing_to_ask(table: LabelTable, people: People, budget: float) -> str:
    """Say why nobody is asked for anything, where that is so."""
    import numpy as np
    import polars as pl

    from annotrace.labels.frames import frame_from_table

    labelled = frame_from_table(table).group_by("annotator").agg(pl.col("item").n_unique())
    done = {str(name) for name, n_items in labelled.rows() if n_items == table.n_items}
    free = people.capacity > 0
    if not free.any():
        return "nobody can be asked, every capacity being 0"
    able = free & np.array([str(name) not in done for name in people.names.tolist()])
    if not able.any():
        return "everybody who can be asked has labelled every item; --annotators names others"
    cheapest = people.cost[able].min()
    if cheapest > budget:
        return f"the cheapest label costs {cheapest:g}, and the budget is {budget:g}"
    return "no label that may be asked for would gain anything"


def _tell(frame: Any, budget: float, out: Path, why_not: str) -> None:
    import polars as pl

    if frame.is_empty():
        click.echo(f"Wrote {out}, without a row: {why_not}.")
        return
    asked = frame.group_by("annotator", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("labels to give"),
        pl.col("expected_gain").mean().alias("expected gain of each"),
    )
    asked = asked.sort("labels to give", descending=True, maintain_order=True)
    title = f"Who should label next ({SHOWN} of {len(asked):,} annotators)"
    rows = asked.head(SHOWN).rows()
    shown = title if len(asked) > SHOWN else "Who should label next"
    print_table(asked.columns, rows, shown)
    first = frame.row(0, named=True)
    click.echo(f"\nFirst: {first['item']}, by {first['annotator']}: {first['reason']}.")
    click.echo(
        f"Wrote {out}: {len(frame):,} labels of {frame['item'].n_unique():,} items to ask for"
        + (f", of a budget of {budget:g}." if len(frame) < budget else ".")
    )
