"""The label file as the commands take it: one argument, and how to read it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from annotrace.labels import LabelTable
    from annotrace.labels.columns import Layout

Command = Callable[..., Any]

_OPTIONS = (
    click.argument("labels", type=click.Path(path_type=Path)),
    click.option("--item", metavar="COLUMN", help="Column that names the item."),
    click.option("--annotator", metavar="COLUMN", help="Column that names the annotator."),
    click.option("--label", metavar="COLUMN", help="Column that holds the label."),
    click.option(
        "--truth",
        metavar="COLUMN",
        help="Column with the true class where it is known (empty elsewhere). Never learned "
        "from; only used to say how well it went.",
    ),
    click.option(
        "--class",
        "classes",
        metavar="NAME",
        multiple=True,
        help="A class, once for each, in the order wanted; any other label is then an error.",
    ),
    click.option(
        "--skip",
        metavar="ANSWER",
        multiple=True,
        help='An answer that means nothing, such as "unsure"; may be given again.',
    ),
    click.option(
        "--repeats",
        type=click.Choice(["keep", "first", "last", "error"]),
        default="keep",
        show_default=True,
        help="Where an annotator labelled an item more than once.",
    ),
)


@dataclass(frozen=True)
class LabelFile:
    """A label file and how to read it.

    Attributes
    ----------
    path : Path
    columns : dict
        The columns named by the user, by role.
    choices : dict
        `classes`, `skip` and `repeats` as in `LabelTable.read`.
    """

    path: Path
    columns: dict[str, str | None]
    choices: dict[str, Any]

    def read(self) -> tuple[LabelTable, Layout | None]:
        """Read the table, and tell which columns were used."""
        from annotrace.labels.codes import Choices
        from annotrace.labels.columns import Named
        from annotrace.labels.reading import read_with_layout

        return read_with_layout(self.path, Named(**self.columns), Choices(**self.choices))


def label_options(command: Command) -> Command:
    """Give a command the argument LABELS and its options, gathered in a `LabelFile`."""

    @functools.wraps(command)
    def gathered(labels: Path, **options: Any) -> Any:
        columns = {role: options.pop(role) for role in ("item", "annotator", "label", "truth")}
        choices = {
            "classes": options.pop("classes") or None,
            "skip": options.pop("skip"),
            "repeats": options.pop("repeats"),
        }
        return command(LabelFile(labels, columns, choices), **options)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered


def describe_labels(table: LabelTable, layout: Layout | None) -> str:
    """Tell how much was read, and from which columns."""
    from annotrace.errors import first_few

    counts = (
        f"{table.n_items:,} items, {table.n_annotators:,} annotators, {table.n_labels:,} labels, "
        f"{table.n_classes:,} classes ({first_few(table.classes, 10)})"
    )
    if layout is None:
        return counts
    roles = {"item": layout.item, "annotator": layout.annotator, "label": layout.label}
    used = [f"{role} {name!r}" for role, name in roles.items() if name is not None]
    if layout.wide:
        used.append(f"{len(layout.answers):,} columns of answers")
    if layout.truth is not None:
        used.append(f"truth {layout.truth!r} (for the score only)")
    return f"{counts}\nColumns: {', '.join(used)}"
