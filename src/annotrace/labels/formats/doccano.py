"""doccano: JSON, JSON lines or csv of a text or image classification project, one file per user.

A record has `id`, the `text` or `filename`, any fields of the project, `label`, a list of classes
(`cats` in a project for intents), and `Comments`. In csv, several classes are joined by `#`. It
does not name the annotator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.columns import find_column
from annotrace.labels.documents import EXPORT_AGAIN, Document
from annotrace.labels.formats.base import Answers, Format, Questions, records_of

_CONTENT = ("text", "filename", "data")
_COMMENTS, _SEPARATOR = "Comments", "#"


def _sniff(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and any(name in record for name in _CONTENT)
        and isinstance(record.get("label", record.get("cats")), list)
        and (isinstance(record.get(_COMMENTS), list) or not _names_annotator(record))
    )


def _names_annotator(record: Mapping[str, Any]) -> bool:
    return find_column(list(record), "annotator", "") is not None


def _sniff_columns(columns: Sequence[str]) -> bool:
    return {"id", "label", _COMMENTS} <= set(columns) and not set(columns).isdisjoint(_CONTENT)


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        name = record.item(item, ["id", "filename"])
        labels = record.fields.get("label", record.fields.get("cats"))
        if document.columns:
            labels = _check_one(labels, record.place)
        if not isinstance(labels, list):
            raise InputError(f"{record.place}: 'label' is not a list. {EXPORT_AGAIN}")
        if any(isinstance(label, list) for label in labels):
            raise InputError(
                f"{record.place}: 'label' contains spans of text instead of classes. Export a "
                "classification project."
            )
        yield record.answer(name, None, labels)


def _check_one(cell: str | None, place: str) -> list[str]:
    """Return the label in a cell of a csv file, if there is one."""
    if cell and _SEPARATOR in cell:
        raise InputError(
            f"{place}: the label {cell[:60]!r} may be several, which doccano joins by "
            f"{_SEPARATOR!r}. Export the project as JSONL."
        )
    return [cell] if cell else []


DOCCANO = Format("doccano", "doccano export", _sniff, _read, _sniff_columns)
