"""The options --text and --text-column: a table of texts, or columns of the label files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.label_files import LabelFiles

if TYPE_CHECKING:
    from annotrace.data import TextSource
    from annotrace.labels import LabelTable
    from annotrace.labels.side_tables import ItemTexts, LabelColumns

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


@dataclass(frozen=True)
class Texts:
    """What --text and --text-column name."""

    given: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def read(
        self,
        item: str | None = None,
        limits: Mapping[str, int] | None = None,
        *,
        item_of_labels: str | None = None,
        can_be_unnamed: bool = False,
    ) -> TextSource:
        """Read the texts of a file; parameters as in `annotrace.labels.side_tables.read_texts`."""
        from annotrace.labels.side_tables import read_texts
        from annotrace.limits import Limits

        if len(self.given) > 1:
            raise click.UsageError(
                "--text is one file here. Name its two columns of pairs with --text-column."
            )
        names = {"item": item, "item_of_labels": item_of_labels}
        found = read_texts(
            self.given[0],
            text=self.columns,
            limits=Limits(**(limits or {})),
            can_be_unnamed=can_be_unnamed,
            **names,
        )
        return _as_source(found, self.given[0])

    def read_beside(self, labels: LabelFiles, used: Any, table: LabelTable | None) -> TextSource:
        """Read the texts of a file, or of columns of the label files.

        `used` is what `LabelFiles.read` returned beside the table. With a table, texts in the label
        files whose items it does not have are left out: their answers are no labels.
        """
        beside = _further_columns(labels, used)
        columns = () if beside is None else beside.sheet.columns
        if (parts := _split(self.given, columns)) is not None:
            return Texts(parts, self.columns).read_beside(labels, used, table)
        file = self._file(labels, columns)
        if file is not None:
            item = labels.options["item"] if beside is None else beside.layout.item
            return self.read(None, labels.limits, item_of_labels=item)
        if self.columns:
            raise click.UsageError(
                f"--text-column is a column of a file of texts, but {self.given[0]!r} is a column "
                "of the labels. Repeat --text for pairs."
            )
        # Without a table of labels, this says why.
        beside = beside or labels.further_columns()
        found = beside.texts(self.given)
        return _as_source(found if table is None else _of(table, found), str(labels.paths[0]))

    def _file(self, labels: LabelFiles, columns: Sequence[Any]) -> Path | None:
        """Return the file that --text names, None if it names columns of the label files."""
        from annotrace.labels.reading import has_known_suffix

        known = [name for name in self.given if name in columns]
        files = [Path(name) for name in self.given if Path(name).is_file()]
        for name in known:
            if Path(name).is_file():
                raise click.UsageError(
                    f"--text {name}: there are a file and a column of this name. Write ./{name} "
                    f"for the file, or --text {labels.paths[0]} --text-column {name}."
                )
        if not files:
            _check_exists(self.given, labels, columns)
        if known and not any(map(has_known_suffix, files)):
            return None
        if files and len(self.given) > 1:
            raise click.UsageError(
                f"--text {files[0]} is a file, and can only be given alone. Name its columns with "
                "--text-column."
            )
        return files[0] if files else None


def _split(given: Sequence[str], columns: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the columns of "premise,hypothesis", None if it is not a list of columns."""
    parts = tuple(part.strip() for part in given[0].split(","))
    is_list = len(given) == 1 and len(parts) > 1 and all(part in columns for part in parts)
    return parts if is_list and given[0] not in columns else None


def _further_columns(labels: LabelFiles, used: Any) -> LabelColumns | None:
    """Open the label files once more if they are tables and not piped."""
    from annotrace.labels.columns import Layout

    is_piped = any(str(path) == "-" for path in labels.paths)
    return labels.further_columns() if isinstance(used, Layout) and not is_piped else None


def _check_exists(given: Sequence[str], labels: LabelFiles, columns: Sequence[Any]) -> None:
    """Raise if a name is that of no column, and that of no file either."""
    from annotrace.labels.columns import describe_columns
    from annotrace.labels.reading import has_known_suffix

    for name in given:
        if name not in columns and (columns or has_known_suffix(name)):
            it_has = f"; {describe_columns(columns)}" if columns else ""
            raise click.UsageError(
                f"--text {name}: there is no such file, and no such column in {labels.paths[0]}"
                f"{it_has}."
            )


def _of(table: LabelTable, found: ItemTexts) -> ItemTexts:
    """Return the texts of the items of a table."""
    assert found.items is not None
    names = set(table.items.tolist())
    kept = [row for row, name in enumerate(found.items) if name in names]
    texts: Any = [found.texts[row] for row in kept]
    return found._replace(items=[found.items[row] for row in kept], texts=texts)


def _as_source(found: ItemTexts, source: str) -> TextSource:
    from annotrace.data import TextSource

    return TextSource(found.texts, found.items, source=source, columns=found.columns)


def text_options(metavar: str, help: str) -> Decorator:
    """Return the options --text and --text-column, passed as one `Texts` or None."""

    def add_options(command: Command) -> Command:
        @functools.wraps(command)
        def with_texts(
            *args: Any, text: tuple[str, ...], text_column: tuple[str, ...], **options: Any
        ) -> Any:
            if text_column and not text:
                raise click.UsageError("--text-column is a column of the file --text FILE.")
            given = Texts(text, text_column) if text else None
            return command(*args, texts=given, **options)

        return _text_option(metavar, help)(_column_option(with_texts))

    return add_options


def _text_option(metavar: str, help: str) -> Decorator:
    return click.option("--text", metavar=metavar, multiple=True, help=help)


_column_option = click.option(
    "--text-column",
    metavar="COLUMN",
    multiple=True,
    help="Column of texts in the file --text; twice for pairs of texts.  [default: text, sentence, "
    "review, ...]",
)
