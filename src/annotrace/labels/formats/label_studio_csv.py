"""Label Studio: the exports named CSV and TSV, one row per annotation.

The columns are sorted by name, so that the fields of the task stand among the answers. A field is
the same in all rows of a task, so that a column that differs within a task is an answer. A control
on which all agree cannot be told from a field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from annotrace.errors import InputError, first_few
from annotrace.labels.documents import Document, parse_json
from annotrace.labels.formats.base import Answers, Format, Questions, Record, records_of
from annotrace.labels.formats.label_studio import has_classes, short_answer
from annotrace.limits import Limits

ITEM, ANNOTATOR = "id", "annotator"
_NEEDED = frozenset([ITEM, ANNOTATOR, "annotation_id", "created_at", "updated_at", "lead_time"])
_NO_ANSWERS = _NEEDED | {"agreement", "history"}


def is_label_studio(columns: Sequence[Any]) -> bool:
    """Whether a table with these columns is a CSV or TSV export of Label Studio."""
    return set(columns) >= _NEEDED


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    if not is_label_studio(document.columns):
        needed = first_few(sorted(_NEEDED), len(_NEEDED))
        raise InputError(f"{document.path} is no csv or tsv file with the columns {needed}.")
    rows = list(records_of(document))
    names = _find_controls(rows, questions.wanted)
    if not names:
        raise InputError(
            f"{document.path}: all annotations of a task are alike, so that answers cannot be told "
            "from the fields of tasks. Name the control with question= (--question), one of "
            f"{first_few(_other_columns(rows), 10)}, or export JSON, which tells them apart."
        )
    for row in rows:
        answers = {name: _value(row.fields[name], row.place, document.limits) for name in names}
        classes = {name: value for name, value in answers.items() if has_classes(value)}
        yield short_answer(row, classes if questions.wanted is None else answers, questions, item)


def _find_controls(rows: Sequence[Record], wanted: str | None) -> list[str]:
    """Return the wanted column, else those that differ within a task."""
    columns = _other_columns(rows)
    if wanted is not None:
        return [wanted] if wanted in columns else columns
    first: dict[Any, Mapping[str, Any]] = {}
    same_task = [first.setdefault(row.fields[ITEM], row.fields) for row in rows]
    return [
        name
        for name in columns
        if any(row.fields[name] != one[name] for row, one in zip(rows, same_task, strict=True))
    ]


def _other_columns(rows: Sequence[Record]) -> list[str]:
    return [name for name in rows[0].fields if name not in _NO_ANSWERS]


def _value(cell: str | None, place: str, limits: Limits) -> Any:
    """Return the answer in a cell, which is JSON unless it is one choice or text."""
    if not cell or not cell.startswith(("{", "[")):
        return cell or None
    try:
        value = parse_json(cell, place, limits)
    except json.JSONDecodeError:
        return cell
    # One choice is never in a list.
    is_choice = isinstance(value, list) and len(value) == 1 and not isinstance(value[0], dict)
    return cell if is_choice else value


LABEL_STUDIO_CSV = Format(
    "label-studio-csv", "Label Studio CSV", lambda record: False, _read, is_label_studio
)
