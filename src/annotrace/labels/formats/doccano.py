"""doccano: JSON or JSON lines of a text or image classification project, one file per user.

A record has `id`, the `text` or `filename`, and `label`, a list of classes (`cats` in a project
for intents). It does not name the annotator.
"""

from __future__ import annotations

from typing import Any

from annotrace.errors import InputError
from annotrace.labels.columns import find_column
from annotrace.labels.documents import EXPORT_AGAIN, Document
from annotrace.labels.formats.base import Answers, Format, Questions, records_of

_CONTENT = ("text", "filename", "data")


def _sniff(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and any(name in record for name in _CONTENT)
        and isinstance(record.get("label", record.get("cats")), list)
        and find_column(list(record), "annotator", "") is None
    )


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        name = record.item(item, ["id", "filename"])
        labels = record.fields.get("label", record.fields.get("cats"))
        if not isinstance(labels, list):
            raise InputError(f"{record.place}: 'label' is not a list. {EXPORT_AGAIN}")
        if any(isinstance(label, list) for label in labels):
            raise InputError(
                f"{record.place}: 'label' contains spans of text instead of classes. Export a "
                "classification project."
            )
        yield record.answer(name, None, labels)


DOCCANO = Format("doccano", "doccano export", _sniff, _read)
