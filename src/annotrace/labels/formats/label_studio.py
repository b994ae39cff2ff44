"""Label Studio: the exports named JSON and JSON-MIN, and what its REST API returns.

JSON has one record per task, with `annotations` by several annotators; `result` lists the answers
of each by the name of the control (`from_name`). `/api/tasks` has the same records in `tasks`.
JSON-MIN has one record per annotation: the fields of the task, `id`, the answers, `annotator` and
the time, in this order. Annotations are numbered in the order in which they were made, which is not
the order of all exports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

# The controls whose answers are classes; those of boxes, spans, numbers and text are not.
_VALUES = {
    "choices": "choices",
    "rating": "rating",
    "pairwise": "selected",
    "taxonomy": "taxonomy",
}
# How Label Studio itself shows a class of a taxonomy, unless told otherwise.
_PATH_SEPARATOR = " / "

_AFTER_THE_ANSWERS = ("annotator", "annotation_id", "lead_time")


def _is_full(record: Any) -> bool:
    if isinstance(record, dict) and isinstance(record.get("tasks"), list):
        return any(map(_is_task, record["tasks"]))
    return _is_task(record)


def _is_task(task: Any) -> bool:
    return (
        isinstance(task, dict)
        and isinstance(task.get("data"), dict)
        and isinstance(task.get("annotations"), list)
    )


def _read_full(document: Document, questions: Questions, item: str | None) -> Answers:
    for task in _tasks(document):
        data = task.part("data", dict)
        name = task.item(item, ["id"], data | {"id": task.fields.get("id")})
        for annotation in task.objects("annotations"):
            yield _answer(annotation, name, questions)
        yield from (Skipped("draft") for _ in task.part("drafts", list, optional=True))


def _tasks(document: Document) -> Iterator[Record]:
    """Iterate over the tasks of an export, or of a page of tasks."""
    for record in records_of(document):
        if "tasks" not in record.fields or "data" in record.fields:
            yield record
            continue
        for number, task in enumerate(record.objects("tasks"), start=1):
            yield task._replace(number=number, place=f"{document.path}, task {number}")


def _answer(annotation: Record, item: str, questions: Questions) -> Answer | Skipped:
    fields = annotation.fields
    if fields.get("was_cancelled") is True:
        return Skipped("cancelled")
    answers = _classes_by_control(annotation.objects("result"))
    chosen = questions.choose(answers, annotation.place)
    annotator = _annotator(fields.get("completed_by"))
    is_truth, order = fields.get("ground_truth") is True, _as_order(fields.get("id"))
    return annotation.answer(item, annotator, chosen, is_truth, order)


def _classes_by_control(result: list[Record]) -> dict[str, list[Any]]:
    """Collect the chosen classes of each control, over all regions."""
    answers: dict[str, list[Any]] = {}
    for entry in result:
        value, key = entry.fields.get("value"), _VALUES.get(str(entry.fields.get("type")))
        if isinstance(value, dict) and key is not None:
            chosen = chosen_classes({key: value.get(key)})
            answers.setdefault(str(entry.fields.get("from_name")), []).extend(chosen)
    return answers


def chosen_classes(value: Any) -> list[Any]:
    """Return the classes in an answer: a class, an object of a control, or a list of these."""
    if isinstance(value, list):
        return [chosen for part in value for chosen in chosen_classes(part)]
    key = _class_key(value)
    if key is None:
        return [] if value is None else [value]
    chosen = value[key] if isinstance(value[key], list) else [value[key]]
    return [_join_path(part) for part in chosen] if key == "taxonomy" else chosen


def _class_key(value: Any) -> str | None:
    known = _VALUES.values() if isinstance(value, dict) else ()
    return next((key for key in known if key in value), None)


def _join_path(path: Any) -> Any:
    """Return a class of a taxonomy, which is a list from the root to the class, as text."""
    is_path = isinstance(path, list) and all(isinstance(part, str) for part in path)
    return _PATH_SEPARATOR.join(path) if is_path else path


def has_classes(value: Any) -> bool:
    """Whether an answer has classes, as opposed to boxes, spans or numbers."""
    return all(isinstance(chosen, str) for chosen in chosen_classes(value))


def _annotator(completed_by: Any) -> str | None:
    if isinstance(completed_by, dict):
        return as_text(completed_by.get("email")) or as_text(completed_by.get("id"))
    return as_text(completed_by)


def _as_order(number: Any) -> int:
    return int(number) if isinstance(number, str) and number.isdecimal() else 0


def _is_short(record: Any) -> bool:
    return isinstance(record, dict) and set(_AFTER_THE_ANSWERS) <= set(record)


def _read_short(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        answers = _short_answers(record.fields, questions.wanted)
        yield short_answer(record, answers, questions, item)


def short_answer(
    record: Record, answers: Mapping[str, Any], questions: Questions, item: str | None
) -> Answer | Skipped:
    """Return the answer of a record that is one annotation, or a task without any."""
    fields = record.fields
    name, annotator = record.item(item, ["id"]), _annotator(fields.get("annotator"))
    if not annotator and not fields.get("annotation_id"):
        return Skipped("unanswered")
    chosen = chosen_classes(questions.choose(answers, record.place))
    return record.answer(name, annotator, chosen, order=_as_order(fields.get("annotation_id")))


def _short_answers(record: Mapping[str, Any], wanted: str | None) -> dict[str, Any]:
    """Return the fields that are answers: the wanted one, else those between id and annotator."""
    if wanted is not None and wanted in record:
        return {wanted: record[wanted]}
    names = [name for name in record if name != "annotator"]
    first = names.index("id") + 1 if "id" in names else 0
    last = names.index("annotation_id") if "annotation_id" in names else len(names)
    return {name: record[name] for name in names[first:last] if has_classes(record[name])}


LABEL_STUDIO = Format("label-studio", "Label Studio JSON", _is_full, _read_full)
LABEL_STUDIO_MIN = Format("label-studio-min", "Label Studio JSON-MIN", _is_short, _read_short)
