"""Label Studio: the exports named JSON and JSON-MIN.

JSON has one record per task, with `annotations` by several annotators; `result` lists the answers
of each by the name of the control (`from_name`). JSON-MIN has one record per annotation: the fields
of the task, `id`, the answers, `annotator` and the time, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annotrace.labels.documents import Document
from annotrace.labels.formats.base import (
    Answer,
    Answers,
    Format,
    Questions,
    Record,
    Skipped,
    as_text,
    records_of,
)

# The controls whose answers are classes; those of boxes, spans and text are not.
_VALUES = {"choices": "choices", "rating": "rating", "pairwise": "selected"}

_AFTER_THE_ANSWERS = ("annotator", "annotation_id", "lead_time")


def _is_full(task: Any) -> bool:
    return (
        isinstance(task, dict)
        and isinstance(task.get("data"), dict)
        and isinstance(task.get("annotations"), list)
    )


def _read_full(document: Document, questions: Questions, item: str | None) -> Answers:
    for task in records_of(document):
        data = task.part("data", dict)
        name = task.item(item, ["id"], data | {"id": task.fields.get("id")})
        for annotation in task.objects("annotations"):
            yield _answer(annotation, name, questions)
        yield from (Skipped("draft") for _ in task.part("drafts", list, optional=True))


def _answer(annotation: Record, item: str, questions: Questions) -> Answer | Skipped:
    fields = annotation.fields
    if fields.get("was_cancelled") is True:
        return Skipped("cancelled")
    answers = _classes_by_control(annotation.objects("result"))
    chosen = questions.choose(answers, annotation.place)
    annotator = _annotator(fields.get("completed_by"))
    return annotation.answer(item, annotator, chosen, fields.get("ground_truth") is True)


def _classes_by_control(result: list[Record]) -> dict[str, list[Any]]:
    """Collect the chosen classes of each control, over all regions."""
    answers: dict[str, list[Any]] = {}
    for entry in result:
        value, key = entry.fields.get("value"), _VALUES.get(str(entry.fields.get("type")))
        if isinstance(value, dict) and key is not None:
            chosen = value.get(key)
            listed = chosen if isinstance(chosen, list) else [chosen]
            answers.setdefault(str(entry.fields.get("from_name")), []).extend(listed)
    return answers


def _annotator(completed_by: Any) -> str | None:
    if isinstance(completed_by, dict):
        return as_text(completed_by.get("email")) or as_text(completed_by.get("id"))
    return as_text(completed_by)


def _is_short(record: Any) -> bool:
    return isinstance(record, dict) and set(_AFTER_THE_ANSWERS) <= set(record)


def _read_short(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        name = record.item(item, ["id"])
        answers = _short_answers(record.fields, questions.wanted)
        annotator = _annotator(record.fields.get("annotator"))
        yield record.answer(name, annotator, questions.choose(answers, record.place))


def _short_answers(record: Mapping[str, Any], wanted: str | None) -> dict[str, Any]:
    """Return the fields that are answers: the wanted one, else those between id and annotator."""
    names = list(record)
    first = names.index("id") + 1 if "id" in names else 0
    last = names.index("annotator") if "annotator" in names else len(names)
    chosen = [wanted] if wanted is not None and wanted in record else names[first:last]
    return {name: _short_value(record[name]) for name in chosen}


def _short_value(value: Any) -> Any:
    """Return the chosen classes; an answer may be an object, sometimes within a list."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        return next((value[key] for key in _VALUES.values() if key in value), value)
    return value


LABEL_STUDIO = Format("label-studio", "Label Studio JSON", _is_full, _read_full)
LABEL_STUDIO_MIN = Format("label-studio-min", "Label Studio JSON-MIN", _is_short, _read_short)
