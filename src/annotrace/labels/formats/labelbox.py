"""Labelbox: the rows (NDJSON) of an export, with radio classifications.

A row has the `data_row` and, for each project, `labels` by several annotators; a label has
`classifications`, each with a name and one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotrace.labels.documents import Document
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


def _sniff(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("data_row"), dict)
        and isinstance(row.get("projects"), dict)
    )


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    for number, row in document.objects():
        place = document.place(number)
        data_row = part(row, "data_row", dict, place)
        name = item_name(item, ["global_key", "external_id", "id"], data_row, place)
        projects = part(row, "projects", dict, place)
        for project in projects:
            for label in entries(part(projects, project, dict, place), "labels", place):
                yield _answer(number, name, label, questions, place)


def _answer(
    number: int, item: str, label: dict[str, Any], questions: Questions, place: str
) -> Answer | Skipped:
    if part(label, "performance_details", dict, place, optional=True).get("skipped") is True:
        return Skipped("skipped")
    annotations = part(label, "annotations", dict, place)
    answers = {
        str(entry.get("name")): _chosen(entry, place)
        for entry in entries(annotations, "classifications", place, optional=True)
        if "radio_answer" in entry or "checklist_answers" in entry
    }
    chosen = questions.choose(answers, place)
    answer = None if chosen is None else one_label(answers[chosen], item, place)
    if answer is None:
        return Skipped("empty")
    by = part(label, "label_details", dict, place).get("created_by")
    return Answer(number, item, as_text(by), answer)


def _chosen(classification: dict[str, Any], place: str) -> list[Any]:
    checked = entries(classification, "checklist_answers", place, optional=True)
    answers = checked or [part(classification, "radio_answer", dict, place, optional=True)]
    return [answer.get("name") for answer in answers]


LABELBOX = Format("labelbox", "Labelbox export", _sniff, _read)
