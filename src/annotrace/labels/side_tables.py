"""Tables beside the labels: gold classes, what is known of annotators, and further columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.columns import ColumnNames, Layout, find_column, find_layout
from annotrace.labels.reading import list_files, open_document
from annotrace.labels.sheets import Sheet, stack_sheets
from annotrace.limits import LABEL_LIMITS, Limits


def read_gold(path: str | Path, limits: Limits = LABEL_LIMITS) -> dict[str, str]:
    """Read the class of gold items from a file with a column of items and one of classes.

    The latter has a usual name of truth (truth, gold, ...) or of labels (label, class, ...). Empty
    cells are left out.
    """
    sheet = _read_sheet([path], limits)
    item = _required(sheet, "item")
    truth = find_column(sheet.columns, "truth", sheet.source)
    return _values_by_name(sheet, item, truth if truth is not None else _required(sheet, "label"))


def read_by_annotator(
    path: str | Path, column: str, limits: Limits = LABEL_LIMITS
) -> dict[str, str]:
    """Read a column about annotators from a file that has a column of annotators too."""
    sheet = _read_sheet([path], limits)
    find_column(sheet.columns, column, sheet.source, column)
    return _values_by_name(sheet, _required(sheet, "annotator"), column)


class LabelColumns:
    """Further columns of label files in the long form, by annotator or by label.

    Parameters
    ----------
    paths : sequence of paths
    names : ColumnNames
        As in `LabelTable.read`.
    limits : Limits
    """

    def __init__(
        self, paths: Sequence[str | Path], names: ColumnNames, limits: Limits = LABEL_LIMITS
    ) -> None:
        self.sheet = _read_sheet(paths, limits)
        self.layout: Layout = find_layout(self.sheet.columns, names, self.sheet.source)
        if self.layout.wide:
            raise InputError(
                f"{self.sheet.source} has one column per annotator. A column about annotators or "
                "times needs one row per label: item, annotator, label."
            )

    def by_annotator(self, column: str) -> dict[str, str]:
        """Return the value of each annotator, which must be the same in all its rows."""
        find_column(self.sheet.columns, column, self.sheet.source, column)
        return _values_by_name(self.sheet, self.layout.annotator, column)

    def by_label(self, column: str) -> dict[tuple[str, str], str]:
        """Return the value of each (item, annotator); the last, if a pair is repeated."""
        find_column(self.sheet.columns, column, self.sheet.source, column)
        parts = (self.layout.item, self.layout.annotator, column)
        rows = zip(*(_texts(self.sheet, part) for part in parts), strict=True)
        return {(item, annotator): value for item, annotator, value in rows if value}


def _read_sheet(paths: Sequence[str | Path], limits: Limits) -> Sheet:
    documents = [open_document(file, limits) for file in list_files(paths, limits)]
    for document in documents:
        if document.arrays is not None:
            raise InputError(f"{document.path} contains arrays, but a table with names is needed.")
    return stack_sheets([document.sheet() for document in documents])


def _required(sheet: Sheet, role: str) -> Any:
    column = find_column(sheet.columns, role, sheet.source)
    if column is None:
        raise InputError(
            f"{sheet.source}: expected a column {role!r}, but it has {list(sheet.columns)[:20]}."
        )
    return column


def _texts(sheet: Sheet, column: Any) -> list[str]:
    """Return the cells of a column as text, "" if empty."""
    coded = sheet.column(column).as_text()
    names = [*coded.names.tolist(), ""]
    return [names[code] for code in coded.codes.tolist()]


def _values_by_name(sheet: Sheet, key: Any, column: Any) -> dict[str, str]:
    values: dict[str, str] = {}
    rows = zip(_texts(sheet, key), _texts(sheet, column), strict=True)
    for row, (name, value) in enumerate(rows):
        if not value:
            continue
        if not name:
            raise InputError(f"{sheet.cell(row, key)} is empty. Every row needs a name.")
        if values.setdefault(name, value) != value:
            raise InputError(
                f"{sheet.cell(row, column)}: {name!r} has {value!r} here and {values[name]!r} "
                "in a row above. Keep one."
            )
    return values
