"""Argilla: records as `to_json`, `to_list` and `to_dict` write them, or as a Hugging Face dataset.

A nested record has `responses`: for each question a list of `user_id` and `value`.
A flat record, as in a dataset, has columns `QUESTION.responses`, `QUESTION.responses.users` and
`QUESTION.responses.status`, each with a list. Suggestions come from models and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.documents import EXPORT_AGAIN, Document
from annotrace.labels.formats.base import (
    Answer,
    Format,
    Questions,
    Skipped,
    as_text,
    entries,
    item_name,
    one_label,
    part,
)

_RESPONSES = ".responses"


def is_flat(columns: Sequence[Any]) -> bool:
    """Whether columns are those of a dataset exported from Argilla."""
    return any(str(name).endswith(_RESPONSES) and f"{name}.users" in columns for name in columns)


def _sniff(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    in_columns = all(isinstance(entry.get(name), list) for name in ("id", "fields", "responses"))
    by_id = bool(entry) and all(isinstance(v, dict) and _is_nested(v) for v in entry.values())
    return _is_nested(entry) or is_flat(list(entry)) or in_columns or by_id


def _is_nested(record: dict[str, Any]) -> bool:
    return isinstance(record.get("responses"), dict) and isinstance(record.get("fields"), dict)


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    for number, record in _records(document):
        place = document.place(number)
        fields = part(record, "metadata", dict, place, optional=True)
        fields = fields | part(record, "fields", dict, place, optional=True) | record
        name = item_name(item, ["id"], fields, place)
        responses = _responses(record, place)
        chosen = questions.choose(responses, place)
        for value, user, status in () if chosen is None else responses[chosen]:
            if status not in (None, "submitted"):
                yield Skipped(str(status))
                continue
            label = one_label(value, name, place)
            yield Skipped("empty") if label is None else Answer(number, name, user, label)


def _records(document: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the records in any layout."""
    for number, entry in document.objects():
        if _holds_columns(entry):
            yield from enumerate(_rows(entry, document.place(number)), start=1)
        elif _holds_index(entry):
            yield from enumerate(entry.values(), start=1)
        else:
            yield number, entry


def _holds_columns(entry: dict[str, Any]) -> bool:
    """Whether it is `to_dict(orient="names")`: one list per field."""
    return isinstance(entry.get("id"), list)


def _holds_index(entry: dict[str, Any]) -> bool:
    """Whether it is `to_dict(orient="index")`: one record per id."""
    return not _is_nested(entry) and all(isinstance(value, dict) for value in entry.values())


def _rows(columns: dict[str, Any], place: str) -> Iterator[dict[str, Any]]:
    lengths = {name: len(part(columns, name, list, place)) for name in columns}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{place}: fields have different lengths {lengths}. {EXPORT_AGAIN}")
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _responses(
    record: dict[str, Any], place: str
) -> dict[str, list[tuple[Any, str | None, str | None]]]:
    """Return the answers to each question: value, user and status."""
    if "responses" in record:
        nested = part(record, "responses", dict, place, optional=True)
        return {
            question: [
                (entry.get("value"), as_text(entry.get("user_id")), as_text(entry.get("status")))
                for entry in entries(nested, question, place)
            ]
            for question in nested
        }
    columns = [name for name in record if name.endswith(_RESPONSES) and record[name] is not None]
    return {name.removesuffix(_RESPONSES): _flat(record, name, place) for name in columns}


def _flat(
    record: dict[str, Any], column: str, place: str
) -> list[tuple[Any, str | None, str | None]]:
    values = part(record, column, list, place)
    users = part(record, f"{column}.users", list, place)
    status = part(record, f"{column}.status", list, place, optional=True) or [None] * len(values)
    if not len(values) == len(users) == len(status):
        raise InputError(
            f"{place}: {column!r} has {len(values)} answers by {len(users)} users with "
            f"{len(status)} states. {EXPORT_AGAIN}"
        )
    return list(zip(values, map(as_text, users), map(as_text, status), strict=True))


ARGILLA = Format("argilla", "Argilla records", _sniff, _read)
