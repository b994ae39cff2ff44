"""Label files as the commands take them: the arguments, and how to read them."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.look_alikes import nearly_equal
from annotrace.cli.warned import telling_warnings

if TYPE_CHECKING:
    from annotrace.labels import LabelTable
    from annotrace.labels.columns import Layout
    from annotrace.labels.reading import Imported

Command = Callable[..., Any]

# What programs write where there is no label.
MISSING = ("-1", "nan", "na", "null")

# Few tasks have more, and most columns of text or numbers do.
MANY_CLASSES = 200

FORMATS = (
    "table",
    "label-studio",
    "label-studio-min",
    "labelbox",
    "ground-truth",
    "argilla",
    "prodigy",
    "doccano",
    "cvat",
    "peerannot",
)

_OPTIONS = (
    click.argument("labels", type=click.Path(path_type=Path), nargs=-1, required=True),
    click.option("--item", metavar="COLUMN", help="Column or field that names the item."),
    click.option("--annotator", metavar="COLUMN", help="Column that names the annotator."),
    click.option("--label", metavar="COLUMN", help="Column that holds the label."),
    click.option(
        "--truth",
        metavar="COLUMN",
        help="Column with the true class where it is known (empty elsewhere): to say how well "
        "it went, not to learn from.",
    ),
    click.option(
        "--question",
        metavar="NAME",
        help="The question to read, where people answered several in a labelling tool.",
    ),
    click.option(
        "--annotator-name",
        metavar="NAME",
        help="Who labelled, where the file of a labelling tool names nobody.",
    ),
    click.option(
        "--from",
        "format",
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help=f"What the file is, where its content does not tell: {', '.join(FORMATS)}.",
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
    """Label files and how to read them.

    Attributes
    ----------
    paths : tuple of Path
    columns : dict
        The columns named by the user, by role.
    request : dict
        `format`, `question` and `annotator_name` as in `LabelTable.read`.
    choices : dict
        `classes`, `skip` and `repeats` as in `LabelTable.read`.
    """

    paths: tuple[Path, ...]
    columns: dict[str, str | None]
    request: dict[str, str | None]
    choices: dict[str, Any]

    def read(self) -> tuple[LabelTable, Layout | Imported | None]:
        """Read the table, and tell which columns or answers were used."""
        from annotrace.labels import LabelTable
        from annotrace.labels.building import TableOptions
        from annotrace.labels.columns import ColumnNames
        from annotrace.labels.reading import ExportOptions, read_parts

        names, options = ColumnNames(**self.columns), TableOptions(**self.choices)
        with telling_warnings("skip"):
            parts, used = read_parts(self.paths, names, options, ExportOptions(**self.request))
        return LabelTable(**parts), used


def label_options(command: Command) -> Command:
    """Give a command the arguments LABELS and their options, gathered in a `LabelFile`."""

    @functools.wraps(command)
    def gathered(labels: tuple[Path, ...], **options: Any) -> Any:
        columns = {role: options.pop(role) for role in ("item", "annotator", "label", "truth")}
        request = {name: options.pop(name) for name in ("format", "question", "annotator_name")}
        choices = {
            "classes": options.pop("classes") or None,
            "skip": options.pop("skip"),
            "repeats": options.pop("repeats"),
        }
        return command(LabelFile(_readable(labels), columns, request, choices), **options)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered


def _readable(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Give paths of which ``-`` is read from standard input."""
    from annotrace.errors import InputError
    from annotrace.labels.files import standard_input

    piped = [path for path in paths if str(path) == "-"]
    if len(piped) > 1:
        raise InputError("Standard input (-) can be read once, and was named more often.")
    return tuple(standard_input() if path in piped else path for path in paths)


learn_truth_option = click.option(
    "--learn-truth",
    is_flag=True,
    help="Learn from the classes in --truth too: they are then known for certain.",
)


def known_truth(table: LabelTable) -> dict[Any, Any]:
    """Give the classes of items that --learn-truth is to learn from, by name."""
    from annotrace.errors import InputError
    from annotrace.labels.gold import gold_by_name

    if table.truth is None:
        raise InputError("--learn-truth takes the known classes from a column: --truth COLUMN.")
    return gold_by_name(table, table.truth)


def describe_labels(
    table: LabelTable, used: Layout | Imported | None, learn_truth: bool = False
) -> str:
    """Tell how much was read, from which columns or answers, and what the truth is for."""
    from annotrace.errors import first_few

    counts = ", ".join(
        f"{number:,} {name if number == 1 else plural}"
        for number, name, plural in (
            (table.n_items, "item", "items"),
            (table.n_annotators, "annotator", "annotators"),
            (table.n_labels, "label", "labels"),
            (table.n_classes, "class", "classes"),
        )
    )
    counts += f" ({first_few(table.classes, 10)})"
    source, oddities = _describe_source(used, learn_truth), _describe_oddities(table, used)
    return "\n".join([counts, *source, *oddities])


def _describe_oddities(table: LabelTable, used: Layout | Imported | None) -> list[str]:
    """Tell what is legal, but seldom meant."""
    from annotrace.errors import first_few

    notes = [
        f"Note: the {what} {first_few(names, 4)} differ only in capitals, spaces, a final .0 or "
        "how accents are encoded, and are taken for different ones: write them alike in the file."
        for what, vocabulary in (
            ("classes", table.classes),
            ("annotators", table.annotators),
            ("items", table.items),
        )
        for names in nearly_equal(vocabulary.tolist())[:1]
    ]
    notes += [
        f"Note: {name!r} is taken for a class; where it means that there is no label, add "
        f"--skip {shlex.quote(name)}."
        for name in map(str, table.classes.tolist())
        if name.strip().casefold() in MISSING
    ]
    if table.n_classes > MANY_CLASSES:
        notes.append(
            f"Note: {table.n_classes:,} classes are many; often they are free text or identifiers "
            "of a column that is not the label's. If so, say which is with --label."
        )
    if _has_header_among_rows(table, used):
        notes.append(
            "Note: the names of the columns stand among the rows too, as where files were joined, "
            "and are taken for a label: take these rows out."
        )
    if again := table.n_labels - _n_pairs(table):
        notes.append(
            f"Note: labels that repeat an item and annotator: {again:,}. They count as further "
            "ones; --repeats first or last keeps one."
        )
    return notes


def _has_header_among_rows(table: LabelTable, used: Layout | Imported | None) -> bool:
    from annotrace.labels.columns import Layout

    if not isinstance(used, Layout) or used.wide:
        return False
    return used.annotator in table.annotators.tolist() and used.label in table.classes.tolist()


def _n_pairs(table: LabelTable) -> int:
    import numpy as np

    pairs = table.item.astype(np.int64) * table.n_annotators + table.annotator
    return len(np.unique(pairs))


def _describe_source(used: Layout | Imported | None, learn_truth: bool) -> list[str]:
    from annotrace.labels.reading import Imported, describe_skipped

    if used is None:
        return []
    if not isinstance(used, Imported):
        return [f"Columns: {_describe_columns(used, learn_truth)}"]
    question = "" if used.question is None else f", question {used.question!r}"
    told = [f"Format: {used.title}{question}"]
    return [*told, describe_skipped(used.skipped)] if used.skipped else told


def _describe_columns(layout: Layout, learn_truth: bool) -> str:
    from annotrace.errors import first_few

    roles = {"item": layout.item, "annotator": layout.annotator, "label": layout.label}
    used = [f"{role} {name!r}" for role, name in roles.items() if name is not None]
    if layout.wide:
        used.append(f"{len(layout.answers):,} columns of answers ({first_few(layout.answers, 10)})")
    if layout.truth is not None:
        use = "learned from, and no score" if learn_truth else "for the score only"
        used.append(f"truth {layout.truth!r} ({use})")
    return ", ".join(used)
