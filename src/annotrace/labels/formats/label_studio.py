"""Label Studio: the exports named JSON and JSON-MIN.

JSON has one record per task, with `annotations` by several annotators; `result` lists the answers
of each by the name of the control (`from_name`). JSON-MIN has one record per annotation: the fields
of the task, `id`, the answers, `annotator` and the time, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

# The controls whose answers are classes; those of boxes, spans and text are not.
_VALUES = {"choices": "choices", "rating": "rating", "pairwise": "selected"}

_AFTER_THE_ANSWERS = ("annotator", "annotation_id", "lead_time")


def _is_full(task: Any) -> bool:
    return (
        isinstance(task, dict)
        and isinstance(task.get("data"), dict)
        and isinstance(task.get("annotations"), list)
    )


def _read_full(
    document: Document, questions: Questions, item: str | None
) -> Iterator[Answer | Skipped]:
    for number, task in document.objects():
        place = document.place(number)
        fields = part(task, "data", dict, place) | {"id": task.get("id")}
        name = item_name(item, ["id"], fields, place)
        for annotation in entries(task, "annotations", place):
            yield _answer(number, name, annotation, questions, place)
        yield from (Skipped("draft") for _ in part(task, "drafts", list, place, optional=True))


def _answer(
    number: int, item: str, annotation: dict[str, Any], questions: Questions, place: str
) -> Answer | Skipped:
    result = entries(annotation, "result", place)
    if annotation.get("was_cancelled") is True:
        return Skipped("cancelled")
    answers = _classes_by_control(result)
    chosen = questions.choose(answers, place)
    label = None if chosen is None else one_label(answers[chosen], item, place)
    if label is None:
        return Skipped("empty")
    by = _annotator(annotation.get("completed_by"))
    return Answer(number, item, by, label, annotation.get("ground_truth") is True)


def _classes_by_control(result: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Collect the chosen classes of each control, over all regions."""
    answers: dict[str, list[Any]] = {}
    for entry in result:
        value, key = entry.get("value"), _VALUES.get(str(entry.get("type")))
        if isinstance(value, dict) and key is not None:
            chosen = value.get(key)
            listed = chosen if isinstance(chosen, list) else [chosen]
            answers.setdefault(str(entry.get("from_name")), []).extend(listed)
    return answers


def _annotator(completed_by: Any) -> str | None:
    if isinstance(completed_by, dict):
        return as_text(completed_by.get("email")) or as_text(completed_by.get("id"))
    return as_text(completed_by)


def _is_short(record: Any) -> bool:
    return isinstance(record, dict) and set(_AFTER_THE_ANSWERS) <= set(record)


def _read_short(
    document: Document, questions: Questions, item: str | None
) -> Iterator[Answer | Skipped]:
    for number, record in document.objects():
        place = document.place(number)
        name = item_name(item, ["id"], record, place)
        chosen = questions.choose(_short_questions(record, questions.wanted), place)
        label = None if chosen is None else one_label(_short_value(record[chosen]), name, place)
        if label is None:
            yield Skipped("empty")
        else:
            yield Answer(number, name, _annotator(record.get("annotator")), label)


def _short_value(value: Any) -> Any:
    """Return the chosen classes; an answer may be an object, sometimes within a list."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        return next((value[key] for key in _VALUES.values() if key in value), value)
    return value


def _short_questions(record: Mapping[str, Any], wanted: str | None) -> list[str]:
    """Return the fields that are answers: the one given, else those between id and annotator."""
    if wanted is not None and wanted in record:
        return [wanted]
    names = list(record)
    first = names.index("id") + 1 if "id" in names else 0
    last = names.index("annotator") if "annotator" in names else len(names)
    return names[first:last]


LABEL_STUDIO = Format("label-studio", "Label Studio JSON", _is_full, _read_full)
LABEL_STUDIO_MIN = Format("label-studio-min", "Label Studio JSON-MIN", _is_short, _read_short)
