"""Tables beside the labels: gold classes, what is known of annotators, and further columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from annotrace.errors import InputError, count, first_few
from annotrace.labels.columns import ColumnNames, Layout, describe_option, find_column
from annotrace.labels.formats.label_studio_csv import ANNOTATOR, ITEM, is_label_studio
from annotrace.labels.layouts import find_layout, one_annotator_layout
from annotrace.labels.reading import list_files, open_document
from annotrace.labels.sheets import Sheet, stack_sheets, with_cache
from annotrace.limits import LABEL_LIMITS, Limits

_QUOTED = 80


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


class ItemTexts(NamedTuple):
    """The texts of items.

    Attributes
    ----------
    items : list of str or None
        Names, in order of first appearance; None if the table has nothing but texts.
    texts : list of str, or of pairs of str
    columns : tuple of str
        The columns that the texts are from: one, or two for pairs.
    """

    items: list[str] | None
    texts: list[str] | list[tuple[str, str]]
    columns: tuple[str, ...]


def read_texts(
    path: str | Path,
    *,
    item: str | None = None,
    text: Sequence[str] = (),
    limits: Limits = LABEL_LIMITS,
    item_of_labels: str | None = None,
    can_be_unnamed: bool = False,
) -> ItemTexts:
    """Read the texts of items from a table, which may repeat them in several rows of an item.

    Parameters
    ----------
    path : str or Path
        A table with an item column and a text column, such as a label file that has the texts.
    item : str, optional
        The item column; detected by its name (item, id, ...) by default.
    text : sequence of str, optional
        The text column, detected by its name (text, sentence, review, ...) by default, or the two
        columns of pairs.
    limits : Limits
        The largest file that is read.
    item_of_labels : str, optional
        The item column of the labels, which is used if this table has it too.
    can_be_unnamed : bool
        Whether a table that has nothing but texts is read row by row.
    """
    sheet = _read_sheet([path], limits)
    limits.check_columns(len(sheet.columns), sheet.source)
    columns = _text_columns(sheet, text)
    if can_be_unnamed and item is None and set(columns) == set(sheet.columns):
        return _unnamed_texts(sheet, columns)
    if item is None and item_of_labels in sheet.columns:
        item = item_of_labels
    # A question may be an item or a text, but not both.
    key = _required(sheet, "item", item, without=columns, can_be_named=True)
    return _texts_by_item(sheet, key, columns, limits)


def _texts_by_item(sheet: Sheet, key: Any, columns: tuple[str, ...], limits: Limits) -> ItemTexts:
    items = list(dict.fromkeys(name for name in _texts(sheet, key) if name))
    limits.check_cell(max(map(len, items), default=0), f"{sheet.source}, item column")
    parts = [_text_of_each(sheet, key, column, items) for column in columns]
    return ItemTexts(items, _join(parts), columns)


def _unnamed_texts(sheet: Sheet, columns: tuple[str, ...]) -> ItemTexts:
    parts = [_texts(sheet, column) for column in columns]
    for column, texts in zip(columns, parts, strict=True):
        if "" in texts:
            raise InputError(f"{sheet.cell(texts.index(''), column)} is empty. Remove the row.")
    return ItemTexts(None, _join(parts), columns)


def _join(parts: list[list[str]]) -> Any:
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _text_columns(sheet: Sheet, given: Sequence[str]) -> tuple[str, ...]:
    if len(given) > 2 or len(set(given)) < len(given):
        raise InputError(
            f"Expected one text column, or the two of pairs, but got {first_few(given)}."
        )
    named = given or (None,)
    return tuple(_required(sheet, "text", name, can_be_named=True) for name in named)


def _text_of_each(sheet: Sheet, key: Any, column: Any, items: list[str]) -> list[str]:
    values = _values_by_name(sheet, key, column)
    if without := [name for name in items if name not in values]:
        found = count(len(without), "item has", "items have")
        raise InputError(
            f"{sheet.source}, column {column!r}: {found} no text ({first_few(without)}). Fill it "
            "in, or remove their rows."
        )
    return [values[name] for name in items]


class LabelColumns:
    """Further columns of label files: by item, and in the long form by annotator or by label.

    Parameters
    ----------
    paths : sequence of paths
    names : ColumnNames
        As in `LabelTable.read`.
    limits : Limits
    query, annotator_name : str, optional
        As in `LabelTable.read`.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        names: ColumnNames,
        limits: Limits = LABEL_LIMITS,
        query: str | None = None,
        annotator_name: str | None = None,
    ) -> None:
        self.sheet = _read_sheet(paths, limits, query)
        self.limits = limits
        self.layout: Layout = _find_layout(self.sheet, names, annotator_name)

    def texts(self, columns: Sequence[str]) -> ItemTexts:
        """Return the texts of items, which must be the same in all rows of an item.

        The column of items may be that of the texts.
        """
        found = _text_columns(self.sheet, columns)
        return _texts_by_item(self.sheet, self.layout.item, found, self.limits)

    def by_annotator(self, column: str) -> dict[str, str]:
        """Return the value of each annotator, which must be the same in all its rows."""
        self._check_long()
        find_column(self.sheet.columns, column, self.sheet.source, column)
        return _values_by_name(self.sheet, self.layout.annotator, column)

    def by_label(self, column: str) -> dict[tuple[str, str], str]:
        """Return the value of each (item, annotator); the last, if a pair is repeated."""
        self._check_long()
        find_column(self.sheet.columns, column, self.sheet.source, column)
        parts = (self.layout.item, self.layout.annotator, column)
        rows = zip(*(_texts(self.sheet, part) for part in parts), strict=True)
        return {(item, annotator): value for item, annotator, value in rows if value}

    def _check_long(self) -> None:
        if self.layout.annotator is None:
            raise InputError(
                f"{self.sheet.source} has no column of annotators. A column about annotators or "
                "times needs one row per label: item, annotator, label."
            )


def _find_layout(sheet: Sheet, names: ColumnNames, annotator_name: str | None) -> Layout:
    if is_label_studio(sheet.columns) and names.label is None:
        return Layout(names.item or ITEM, names.annotator or ANNOTATOR)
    if annotator_name is not None:
        return one_annotator_layout(sheet, names, annotator_name)
    return find_layout(sheet, names)


def _read_sheet(paths: Sequence[str | Path], limits: Limits, query: str | None = None) -> Sheet:
    documents = [open_document(file, limits) for file in list_files(paths, limits)]
    for document in documents:
        if document.arrays is not None:
            raise InputError(f"{document.path} contains arrays, but a table with names is needed.")
    return with_cache(stack_sheets([document.sheet(query) for document in documents]))


def _required(
    sheet: Sheet,
    role: str,
    given: str | None = None,
    *,
    without: Sequence[Any] = (),
    can_be_named: bool = False,
) -> Any:
    """Return the column of a role, which is none of `without`."""
    columns = [name for name in sheet.columns if name not in without]
    column = find_column(columns, role, sheet.source, given)
    if column is None:
        remedy = f" Name it with {describe_option(role)}." if can_be_named else ""
        raise InputError(
            f"{sheet.source}: expected a column {role!r}, but it has {list(sheet.columns)[:20]}."
            f"{remedy}"
        )
    return column


def _texts(sheet: Sheet, column: Any) -> list[str]:
    """Return the cells of a column as text, "" if empty."""
    coded = sheet.column(column).as_text()
    names = [*coded.names.tolist(), ""]
    return [names[code] for code in coded.codes.tolist()]


def _values_by_name(sheet: Sheet, key: Any, column: Any) -> dict[str, str]:
    values: dict[str, str] = {}
    first: dict[str, int] = {}
    rows = zip(_texts(sheet, key), _texts(sheet, column), strict=True)
    for row, (name, value) in enumerate(rows):
        if not value:
            continue
        if not name:
            raise InputError(f"{sheet.cell(row, key)} is empty. Every row needs a name.")
        if values.setdefault(name, value) != value:
            above = sheet.cell(first[name], column)
            raise InputError(
                f"{sheet.cell(row, column)}: {_short(name)} has {_short(value)} here and "
                f"{_short(values[name])} in {above}. Keep one."
            )
        first.setdefault(name, row)
    return values


def _short(value: str) -> str:
    """Quote a value, which may be a long text."""
    return repr(value if len(value) <= _QUOTED else value[: _QUOTED - 1] + "…")
