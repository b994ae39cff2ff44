"""Labelbox: the rows (NDJSON) of an export, with radio classifications.

A row has the `data_row` and, for each project, `labels` by several annotators; a label has
`classifications`, each with a name and one answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.documents import Document
from annotrace.labels.formats.base import (
    Answer,
    Answers,
    Format,
    Questions,
    Record,
    Skipped,
    records_of,
)


def _sniff(row: Any) -> bool:
    return isinstance(row, dict) and (
        (isinstance(row.get("data_row"), dict) and isinstance(row.get("projects"), dict))
        or _is_import(row)
    )


def _is_import(row: Mapping[str, Any]) -> bool:
    """Whether it is a label to import into Labelbox, which the annotator is not part of."""
    is_named = "name" in row or "schemaId" in row
    return isinstance(row.get("dataRow"), dict) and is_named and "uuid" in row


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        if _is_import(record.fields):
            raise InputError(
                f"{record.place}: labels to import into Labelbox name no annotators. Export the "
                "project (project.export() with label_details), whose rows have created_by."
            )
        data_row = record.object("data_row")
        name = data_row.item(item, ["global_key", "external_id", "id"])
        projects = record.object("projects")
        for project in projects.fields:
            for label in projects.object(project).objects("labels"):
                yield _answer(label, name, questions)


def _answer(label: Record, item: str, questions: Questions) -> Answer | Skipped:
    if label.part("performance_details", dict, optional=True).get("skipped") is True:
        return Skipped("skipped")
    answers = {
        str(entry.fields.get("name")): _chosen(entry)
        for entry in label.object("annotations").objects("classifications", optional=True)
        if "radio_answer" in entry.fields or "checklist_answers" in entry.fields
    }
    annotator = label.object("label_details", optional=True).fields.get("created_by")
    return label.answer(item, annotator, questions.choose(answers, label.place))


def _chosen(classification: Record) -> list[Any]:
    checked = classification.objects("checklist_answers", optional=True)
    answers = checked or [classification.object("radio_answer", optional=True)]
    return [answer.fields.get("name") for answer in answers]


LABELBOX = Format("labelbox", "Labelbox export", _sniff, _read)
