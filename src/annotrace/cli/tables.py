"""Tables for people: with rules on a terminal, plain columns in a pipe or a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotrace.diagnosis.diagnosed import Diagnosed
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


def print_accuracy(fitted: Diagnosed, chosen: dict[str, Any], seed: int) -> None:
    """Print how often some classes (codes of each item, by name) and majority vote are right.

    Items whose class was learned from are left out.
    """
    import click

    from annotrace.aggregation import MajorityVote
    from annotrace.diagnosis import balanced_accuracy
    from annotrace.labels.vocabulary import look_up

    table = fitted._scored()
    if table.truth is None:
        return
    known = table.truth >= 0
    if not known.any():
        click.echo("\nNo score: all items of known truth were learned from.")
        return
    vote = MajorityVote(random_state=seed).fit(table).predict()
    chosen = {**chosen, "majority vote": look_up(vote, table.classes)}
    rows = [
        (
            name,
            float((codes == table.truth)[known].mean()),
            balanced_accuracy(codes, table.truth, table.n_classes),
        )
        for name, codes in chosen.items()
    ]
    print_table(["", "right", "balanced"], rows, _against(fitted, int(known.sum())))
    _print_classes(table, next(iter(chosen.values())))


def _against(fitted: Diagnosed, n_items: int) -> str:
    n_learned = int(fitted._learned().sum())
    left_out = f" (not the {n_learned:,} that were learned from)" if n_learned else ""
    return f"Against the truth of {n_items:,} items{left_out}"


def _print_classes(table: LabelTable, chosen: Any) -> None:
    """Print how often each class is found, and how often what is given to it belongs there."""
    from annotrace.diagnosis import per_class

    if table.n_classes > SHOWN or table.truth is None:
        return
    figures = per_class(chosen, table.truth, table.n_classes)
    names = [str(name) for name in table.classes.tolist()]
    rows = list(
        zip(names, figures.n_items.tolist(), *(f.tolist() for f in figures[:2]), strict=True)
    )
    print_table(["class", "items", "found", "precise"], rows, "Class by class")


def print_diagnosis(fitted: Diagnosed) -> None:
    """Print whether the labels show the truth, and what would help, where that is known."""
    import click

    from annotrace.diagnosis.known_truth import contradiction

    if not hasattr(fitted, "diagnosis_"):
        return
    click.echo(f"\n{fitted.diagnosis_}")
    refuted = contradiction(fitted._scored(), fitted._estimate(), fitted.confidence_)
    if refuted is not None:
        click.echo(f"\n{refuted}\n  - {refuted.advice}")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
