"""`annotrace next --gold`: which items an expert should check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.output import MAX_ROWS, print_table

if TYPE_CHECKING:
    from annotrace.allocation import Fitted

GOLD_FILE = "gold.csv"


def plan_gold(
    model: Fitted,
    budget: float | None,
    width: float | None,
    seed: int,
    out: Path,
    *,
    raw: bool,
    quiet: bool,
) -> None:
    """Write the items to check, and print how many are needed and why."""
    from annotrace.allocation import gold_items
    from annotrace.labels.writing import write_csv

    n_items = None if budget is None else int(budget)
    frame = gold_items(model, n_items, width=width, random_state=seed)
    write_csv(frame, out, raw=raw)
    if quiet:
        return
    if width is not None:
        _print_needed(model, width)
    _print_items(frame, out)


def _print_needed(model: Fitted, width: float) -> None:
    from annotrace.allocation import gold_needed

    needed = gold_needed(model, width)
    rows = needed.rows()[: MAX_ROWS + 1]
    title = f"Gold items for 90 % intervals of accuracy of width {width:g}"
    if len(rows) < len(needed):
        title += f" ({MAX_ROWS} of {len(needed) - 1:,} annotators)"
    print_table(["accuracy of", "now about", "gold items", "needed at random"], rows, title)


def _print_items(frame: Any, out: Path) -> None:
    from annotrace.errors import count

    if frame.is_empty():
        click.echo(f"\nWrote {out} without rows: the gold items are enough, or all are gold.")
        return
    n_random = int((frame["part"] == "random").sum())
    if n_random < len(frame):
        first = frame.row(n_random, named=True)
        click.echo(f"\nMost doubtful: {first['item']}, {first['reason']}.")
    click.echo(
        f"\nWrote {out}: {count(len(frame), 'item')} to check, {n_random:,} random (to measure "
        f"accuracy) and {len(frame) - n_random:,} doubtful (to improve it)."
    )
    click.echo(
        "Then fit again with the checked classes in a column truth and --learn-truth. Intervals of "
        "accuracy are valid for random gold items."
    )
