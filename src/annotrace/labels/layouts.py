"""Layouts: the role of each column, by name where names are usual, else by content."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from annotrace.errors import InputError, first_few
from annotrace.labels.columns import (
    ColumnNames,
    Layout,
    check_distinct,
    describe_missing,
    find_column,
    find_roles,
    is_other,
    is_weak_item,
    pandas_index,
)
from annotrace.labels.profiles import Profiles
from annotrace.labels.recognition import ROLES, Recognition
from annotrace.labels.role_evidence import Reading
from annotrace.labels.sheets import Sheet
from annotrace.labels.whole_numbers import shorten
from annotrace.labels.wide_columns import Answers, find_answers

# Tables with more columns are wide, and would take long to search.
_MAX_COLUMNS = 60
# In a wide table, at least this share of rows has an item of its own.
_MIN_DISTINCT = 0.9
# With so few columns of answers, a further column may also name the annotators of a long table.
_FEW_ANSWERS = 3
_MAX_READINGS, _MAX_ANNOTATORS, _MAX_NAME = 4, 20, 60


def find_layout(sheet: Sheet, names: ColumnNames) -> Layout:
    """Find the role of each column of a file, and whether it is long or wide."""
    if names.annotators:
        return wide_layout(sheet, names)
    roles = _find_roles(sheet, names)
    item = _wide_item(sheet, roles)
    is_named = roles["annotator"] is not None or roles["label"] is not None
    if item is None or is_named or not _names_rows(sheet, item):
        return long_layout(sheet, names)
    # A number of the row, and the index that pandas wrote, may stand beside the columns of a label.
    is_doubtful = names.item is None and (roles["item"] is None or is_weak_item(item))
    if is_doubtful and (reading := _recognition(sheet, names, roles).find()) is not None:
        return _long(reading, roles)
    answers = _find_answers(sheet, item, roles["truth"], is_wide=False)
    problem = answers.problem or _find_doubt(answers)
    if problem is not None:
        ways = [_wide_options(answers), *_long_options(_recognition(sheet, names, roles))]
        raise InputError(_describe_unclear(sheet, ways, problem))
    return _wide(item, roles["truth"], answers)


def long_layout(sheet: Sheet, names: ColumnNames) -> Layout:
    """Find the columns of a table with one row per label."""
    roles = _find_roles(sheet, names)
    missing = [role for role in ROLES if roles[role] is None]
    if not missing:
        return Layout(**roles)
    recognition = _recognition(sheet, names, roles)
    reading = recognition.find()
    if reading is not None:
        return _long(reading, roles)
    ways = [*_wide_readings(sheet, roles), *_long_options(recognition)][:_MAX_READINGS]
    if not ways:
        raise InputError(describe_missing(sheet.columns, missing, sheet.source))
    raise InputError(_describe_unclear(sheet, ways))


def one_annotator_layout(sheet: Sheet, names: ColumnNames, annotator: str) -> Layout:
    """Find the columns of a table with one row per label of one annotator, whose name is given."""
    roles = _find_roles(sheet, names)
    column = first_few(names.annotators) if names.annotators else roles["annotator"]
    if column is not None:
        raise InputError(
            f"{sheet.source}: annotators are named by column {column!r}, so annotator_name= "
            "(--annotator-name) cannot name them. Remove it, or rename the column."
        )
    missing = [role for role in ("item", "label") if roles[role] is None]
    if missing:
        raise InputError(describe_missing(sheet.columns, missing, sheet.source))
    return Layout(**roles, annotator_name=annotator)


def wide_layout(sheet: Sheet, names: ColumnNames) -> Layout:
    """Find the columns of a table with one row per item; the layout of a long one if it is long."""
    roles = _find_roles(sheet, names)
    if not names.annotators and all(roles[role] is not None for role in ROLES):
        return Layout(**roles)
    item = _wide_item(sheet, roles)
    if item is None:
        missing = ["item"] if names.annotators else ROLES
        raise InputError(describe_missing(sheet.columns, missing, sheet.source))
    if names.annotators:
        return _given(sheet, item, roles["truth"], names.annotators)
    answers = _find_answers(sheet, item, roles["truth"], is_wide=True)
    if answers.problem is not None:
        raise InputError(_describe_unclear(sheet, [_wide_options(answers)], answers.problem))
    return _wide(item, roles["truth"], answers)


def _find_roles(sheet: Sheet, names: ColumnNames) -> dict[str, Any]:
    check_distinct(sheet.columns, sheet.source)
    return find_roles(sheet.columns, names, sheet.source)


def _wide_item(sheet: Sheet, roles: Mapping[str, Any]) -> Any | None:
    """Return the item column of a table, if it is wide, by its name; None if there is none."""
    if roles["item"] is not None or len(sheet.columns) < 2:
        return roles["item"]
    return pandas_index(sheet.columns)


def _names_rows(sheet: Sheet, item: Any) -> bool:
    """Whether nearly every row has an item of its own."""
    column = sheet.column(item)
    return len(column.names) >= _MIN_DISTINCT * len(column.codes)


def _recognition(sheet: Sheet, names: ColumnNames, roles: Mapping[str, Any]) -> Recognition:
    """Return the search for the columns whose role is not known by name."""
    known = {
        role: roles[role]
        for role in ROLES
        if roles[role] is not None
        and (getattr(names, role) is not None or role != "item" or not is_weak_item(roles[role]))
    }
    columns = [
        name
        for name in sheet.columns
        if name in known.values() or (name != roles["truth"] and not is_other(name))
    ]
    if len(columns) > _MAX_COLUMNS:
        columns = list(known.values())
    return Recognition(Profiles(sheet, columns, list(known.values())), known)


def _long(reading: Reading, roles: Mapping[str, Any]) -> Layout:
    found = {role: getattr(reading, role).name for role in ROLES}
    by_content = tuple(role for role in ROLES if roles[role] != found[role])
    return Layout(**found, truth=roles["truth"], by_content=by_content)


def _find_answers(sheet: Sheet, item: Any, truth: Any, *, is_wide: bool) -> Answers:
    index = pandas_index(sheet.columns)
    columns = [name for name in sheet.columns if name not in (item, truth, index)]
    if not columns:
        missing = ["annotator", "label"]
        raise InputError(describe_missing(sheet.columns, missing, sheet.source))
    # Of whole numbers, pandas writes those in columns with missing values as 1.0.
    return find_answers({name: shorten(sheet.column(name)) for name in columns}, is_wide=is_wide)


def _find_doubt(answers: Answers) -> str | None:
    """Describe why a table may as well be long, one row per item by chance; None if it may not."""
    if len(answers.columns) > _FEW_ANSWERS or not answers.repeated:
        return None
    return f"{answers.repeated[0]!r} may name annotators or hold labels"


def _wide(item: Any, truth: Any, answers: Answers) -> Layout:
    return Layout(item, truth=truth, answers=answers.columns, set_aside=answers.set_aside)


def _given(sheet: Sheet, item: Any, truth: Any, annotators: Iterable[Any]) -> Layout:
    """Return the layout of a wide table whose annotators are given."""
    for name in annotators:
        find_column(sheet.columns, "annotator", sheet.source, name)
        if name in (item, truth):
            role = "item" if name == item else "truth"
            raise InputError(
                f"{sheet.source}: {name!r} cannot be both the {role} column and among the "
                f"annotators. Name the {role} column with {role}= (--{role})."
            )
    return Layout(item, truth=truth, answers=tuple(dict.fromkeys(annotators)))


def _wide_readings(sheet: Sheet, roles: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that read a table as wide, if it can be with an item column that fits."""
    for item in sheet.columns[:_MAX_COLUMNS] if roles["item"] is None else [roles["item"]]:
        if item != roles["truth"] and _names_rows(sheet, item) and len(sheet.columns) > 2:
            answers = _find_answers(sheet, item, roles["truth"], is_wide=False)
            if answers.problem is None:
                yield f"--item {_quoted(item)} {_wide_options(answers)}"
                return


def _wide_options(answers: Answers) -> str:
    """Return the option of the command line that names the annotators of a wide table."""
    return f"--annotators {_joined(answers.columns or answers.set_aside)}"


def _long_options(recognition: Recognition) -> Iterator[str]:
    """Yield the options of the command line that choose each of some readings."""
    for reading in recognition.readings()[:_MAX_READINGS]:
        columns = zip(ROLES, reading, strict=True)
        yield " ".join(f"--{role} {_quoted(column.name)}" for role, column in columns)


def _describe_unclear(sheet: Sheet, ways: Sequence[str], problem: str | None = None) -> str:
    """Describe the ways to read a table, in a form that can be pasted."""
    options = dict.fromkeys(re.findall(r"--(\w+) ", " ".join(ways)))
    return (
        f"{sheet.source}: it is unclear which columns are items, annotators and labels"
        f"{f', as {problem}' if problem else ''}. Name them: {', or '.join(ways)} "
        f"({', '.join(f'{name}=' for name in options)} in Python)."
    )


def _quoted(name: Any) -> str:
    return shlex.quote(str(name)[:_MAX_NAME])


def _joined(names: Iterable[Any]) -> str:
    """Join names by commas as a value of --annotators."""
    line = io.StringIO()
    listed = [str(name)[:_MAX_NAME] for name in names]
    csv.writer(line, lineterminator="").writerow(listed[:_MAX_ANNOTATORS])
    return shlex.quote(line.getvalue()) + ",..." * (len(listed) > _MAX_ANNOTATORS)
