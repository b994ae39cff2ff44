"""SageMaker Ground Truth: the answers of each worker, in any of three files.

`worker-response/.../OBJECT/TIME.json` has `answers`, and only its folder names the item.
A consolidation request lists `annotations` for each `dataObject`. The manifest of a job with
custom consolidation may have `annotationsFromAllWorkers`; any other manifest has one consolidated
label per item and no workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
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

_ALL_WORKERS = "annotationsFromAllWorkers"
_METADATA = "-metadata"


def _sniff(record: Any) -> bool:
    return isinstance(record, dict) and (
        _is_response(record) or _is_request(record) or _is_manifest(record)
    )


def _is_response(record: dict[str, Any]) -> bool:
    answers = record.get("answers")
    return isinstance(answers, list) and all(
        isinstance(answer, dict) and "answerContent" in answer for answer in answers
    )


def _is_request(record: dict[str, Any]) -> bool:
    return "datasetObjectId" in record and "annotations" in record


def _is_manifest(record: dict[str, Any]) -> bool:
    return ("source-ref" in record or "source" in record) and bool(_label_attributes(record))


def _label_attributes(record: dict[str, Any]) -> list[str]:
    return [
        name
        for name in record
        if isinstance(record.get(name + _METADATA), dict) and "job-name" in record[name + _METADATA]
    ]


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    for number, record in document.objects():
        place = document.place(number)
        if "answers" in record:
            name = item_name(
                item, ["folder"], {"folder": document.path.absolute().parent.name}, place
            )
            given = entries(record, "answers", place)
        elif _is_request(record):
            data = part(record, "dataObject", dict, place)
            fields = data | {"datasetObjectId": record["datasetObjectId"]}
            name = item_name(item, ["s3Uri", "content", "datasetObjectId"], fields, place)
            given = entries(record, "annotations", place)
        else:
            name = item_name(item, ["source-ref", "source"], record, place)
            given = _all_workers(record, place)
        for entry in given:
            yield _answer(number, name, entry, questions, place)


def _all_workers(record: dict[str, Any], place: str) -> list[dict[str, Any]]:
    for attribute in _label_attributes(record):
        if isinstance(record[attribute], dict) and _ALL_WORKERS in record[attribute]:
            return entries(record[attribute], _ALL_WORKERS, place)
    raise InputError(
        f"{place}: a consolidated manifest has one label per item and no workers. Read the folder "
        "annotations/worker-response of the job's output instead."
    )


def _answer(
    number: int, item: str, entry: dict[str, Any], questions: Questions, place: str
) -> Answer | Skipped:
    answers = {name: _chosen(value) for name, value in _content(entry, place).items()}
    chosen = questions.choose(answers, place)
    label = None if chosen is None else one_label(answers[chosen], item, place)
    if label is None:
        return Skipped("empty")
    return Answer(number, item, as_text(entry.get("workerId")), label)


def _content(entry: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the form that the worker filled in; it may be JSON within JSON."""
    content = entry.get("answerContent")
    if content is None:
        content = part(entry, "annotationData", dict, place).get("content")
    if isinstance(content, str):
        try:
            content = json.loads(content, parse_int=str, parse_float=str)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{place}: the answer of a worker is not JSON ({error.msg})."
            ) from None
    if not isinstance(content, dict):
        raise InputError(f"{place}: an answer has no content (it may be in S3). {EXPORT_AGAIN}")
    return content


def _chosen(value: Any) -> Any:
    """Return the choice in an element of the form: a label, labels, or pressed buttons."""
    if not isinstance(value, dict):
        return value
    for name in ("label", "labels"):
        if name in value:
            return value[name]
    if value and all(isinstance(pressed, bool) for pressed in value.values()):
        return [name for name, pressed in value.items() if pressed]
    return [value]


GROUND_TRUTH = Format("ground-truth", "SageMaker Ground Truth answers", _sniff, _read)
