"""Tables for people: with rules on a terminal, plain columns in a pipe or a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotrace.labels import LabelTable

SHOWN = 20


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    """Print a table; numbers stand on the right, text is shown as it is."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        # rich takes a pipe to be 80 columns wide, and would cut names to that.
        console = Console(highlight=False, width=1000)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for place, header in enumerate(headers):
        numeric = any(isinstance(row[place], int | float) for row in rows)
        table.add_column(Text(header), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_as_text(value)) for value in row))
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def print_annotators(frame: Any) -> None:
    """Print a frame of annotators by skill, or by labels; the first and the last if many."""
    by = "skill" if "skill" in frame.columns else "n_labels"
    rows = frame.sort(by, descending=True, maintain_order=True).rows()
    title = f"Annotators by {'skill' if by == 'skill' else 'number of labels'}"
    if len(rows) > SHOWN:
        half = SHOWN // 2
        rows = [*rows[:half], ("...",) * len(frame.columns), *rows[-half:]]
        title += f" (the first and last {half} of {len(frame):,}; all are in annotators.csv)"
    headers = ["labels" if name == "n_labels" else name for name in frame.columns]
    print_table(headers, rows, title)


def print_accuracy(table: LabelTable, chosen: dict[str, Any], seed: int) -> None:
    """Print how often some classes (codes of each item, by name) and majority vote are right."""
    from annotrace.aggregation import MajorityVote
    from annotrace.labels.vocabulary import look_up

    if table.truth is None:
        return
    known = table.truth >= 0
    vote = MajorityVote(random_state=seed).fit(table).predict()
    chosen = {**chosen, "majority vote": look_up(vote, table.classes)}
    rows = [(name, float((c == table.truth)[known].mean())) for name, c in chosen.items()]
    print_table(["", "right"], rows, f"Against the truth of {known.sum():,} items")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
