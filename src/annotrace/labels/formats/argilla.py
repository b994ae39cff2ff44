"""Argilla: records as `to_list` and `to_dict` write them, or as a Hugging Face dataset.

A flat record, as in a dataset, has columns `QUESTION.responses`, `QUESTION.responses.users` and
`QUESTION.responses.status`, each with a list. Suggestions come from models and are not read.
A nested record has `responses`: for each question a list of `user_id`, `value` and, if it is from
the server, `status`. Those that `to_json` and the other functions write have no status, and drafts
and discarded responses are among them, which nothing else sets apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.documents import EXPORT_AGAIN, Document
from annotrace.labels.formats.base import Answers, Format, Questions, Record, Skipped, records_of

_Response = tuple[Any, Any, Any]  # value, user and status
_RESPONSES = ".responses"
_FLAT_EXPORTS = "records.to_list(flatten=True), or records.to_datasets() as parquet or JSON lines"
_NO_STATUS = (
    "the responses have no status, so that drafts and discarded ones cannot be told from those "
    f"submitted. Export {_FLAT_EXPORTS}."
)


def is_flat(columns: Sequence[Any]) -> bool:
    """Whether columns are those of a dataset exported from Argilla."""
    return any(str(name).endswith(_RESPONSES) and f"{name}.users" in columns for name in columns)


def _sniff(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    in_columns = all(isinstance(entry.get(name), list) for name in ("id", "fields", "responses"))
    return _is_record(entry) or in_columns or _is_by_id(entry)


def _is_record(entry: Mapping[str, Any]) -> bool:
    nested = isinstance(entry.get("responses"), dict) and isinstance(entry.get("fields"), dict)
    return nested or is_flat(list(entry))


def _is_by_id(entry: Mapping[str, Any]) -> bool:
    """Whether an object has a record for each id."""
    records = list(entry.values())
    return all(isinstance(part, dict) for part in records) and any(map(_is_record, records))


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in _records(document):
        metadata = record.part("metadata", dict, optional=True)
        fields = record.part("fields", dict, optional=True)
        name = record.item(item, ["id"], metadata | fields | record.fields)
        for value, user, status in questions.choose(_responses(record), record.place) or ():
            if status is None:
                raise InputError(f"{record.place}: {_NO_STATUS}")
            is_submitted = status == "submitted"
            yield record.answer(name, user, value) if is_submitted else Skipped(str(status))


def _records(document: Document) -> Iterator[Record]:
    """Iterate over the records in any layout."""
    for record in records_of(document):
        if isinstance(record.fields.get("id"), list):  # to_dict(orient="names"): lists
            rows = _rows(record)
        elif _is_by_id(record.fields):
            rows = list(record.fields.values())  # to_dict(orient="index"): records by id
        else:
            yield record
            continue
        for number, row in enumerate(rows, start=1):
            yield Record(number, document.place(number), row)


def _rows(columns: Record) -> list[dict[str, Any]]:
    lengths = {name: len(columns.part(name, list)) for name in columns.fields}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"{columns.place}: fields have different lengths {lengths}. {EXPORT_AGAIN}"
        )
    rows = zip(*columns.fields.values(), strict=True)
    return [dict(zip(columns.fields, row, strict=True)) for row in rows]


def _responses(record: Record) -> dict[str, list[_Response]]:
    """Return the answers to each question: value, user and status."""
    if "responses" in record.fields:
        nested = record.object("responses", optional=True)
        return {
            question: [
                (entry.fields.get("value"), entry.fields.get("user_id"), entry.fields.get("status"))
                for entry in nested.objects(question)
            ]
            for question in nested.fields
        }
    columns = [name for name, value in record.fields.items() if value is not None]
    return {
        name.removesuffix(_RESPONSES): _flat_responses(record, name)
        for name in columns
        if name.endswith(_RESPONSES)
    }


def _flat_responses(record: Record, column: str) -> list[_Response]:
    if isinstance(record.fields[column], str):
        raise InputError(
            f"{record.place}: {column!r} has the answers of several users in one cell, as in the "
            f"csv of Argilla. Export {_FLAT_EXPORTS}."
        )
    values = record.part(column, list)
    users = record.part(f"{column}.users", list)
    status = record.part(f"{column}.status", list, optional=True) or [None] * len(values)
    if not len(values) == len(users) == len(status):
        raise InputError(
            f"{record.place}: {column!r} has {len(values)} answers by {len(users)} users with "
            f"{len(status)} states. {EXPORT_AGAIN}"
        )
    return list(zip(values, users, status, strict=True))


ARGILLA = Format("argilla", "Argilla records", _sniff, _read, is_flat)
