"""SageMaker Ground Truth: the answers of each worker, in any of three files.

`worker-response/.../OBJECT/TIME.json` has `answers`, and only its folder names the item.
A consolidation request lists `annotations` for each `dataObject`. The manifest of a job with
custom consolidation may have `annotationsFromAllWorkers`; any other manifest has one consolidated
label per item and no workers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.documents import EXPORT_AGAIN, Document, parse_json
from annotrace.labels.formats.base import Answers, Format, Questions, Record, records_of
from annotrace.limits import Limits

_ALL_WORKERS = "annotationsFromAllWorkers"
_METADATA = "-metadata"


def _sniff(record: Any) -> bool:
    return isinstance(record, dict) and (
        _is_response(record) or _is_request(record) or _is_manifest(record)
    )


def _is_response(record: Mapping[str, Any]) -> bool:
    answers = record.get("answers")
    return isinstance(answers, list) and all(
        isinstance(answer, dict) and "answerContent" in answer for answer in answers
    )


def _is_request(record: Mapping[str, Any]) -> bool:
    return "datasetObjectId" in record and "annotations" in record


def _is_manifest(record: Mapping[str, Any]) -> bool:
    return ("source-ref" in record or "source" in record) and bool(_label_attributes(record))


def _label_attributes(record: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name in record
        if isinstance(record.get(name + _METADATA), dict) and "job-name" in record[name + _METADATA]
    ]


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        if "answers" in record.fields:
            folder = {"folder": document.path.absolute().parent.name}
            name = record.item(item, ["folder"], folder)
            answers = record.objects("answers")
        elif _is_request(record.fields):
            data = record.part("dataObject", dict)
            fields = data | {"datasetObjectId": record.fields["datasetObjectId"]}
            name = record.item(item, ["s3Uri", "content", "datasetObjectId"], fields)
            answers = record.objects("annotations")
        else:
            name = record.item(item, ["source-ref", "source"])
            answers = _all_workers(record)
        for answer in answers:
            content = _content(answer, document.limits)
            elements = {key: _chosen(value) for key, value in content.items()}
            chosen = questions.choose(elements, record.place)
            yield answer.answer(name, answer.fields.get("workerId"), chosen)


def _all_workers(record: Record) -> list[Record]:
    for attribute in _label_attributes(record.fields):
        label = record.fields[attribute]
        if isinstance(label, dict) and _ALL_WORKERS in label:
            return record.object(attribute).objects(_ALL_WORKERS)
    raise InputError(
        f"{record.place}: a consolidated manifest has one label per item and no workers. Read the "
        "folder annotations/worker-response of the job's output instead."
    )


def _content(answer: Record, limits: Limits) -> dict[str, Any]:
    """Return the form that the worker filled in; it may be JSON within JSON."""
    content = answer.fields.get("answerContent")
    if content is None:
        content = answer.part("annotationData", dict).get("content")
    if isinstance(content, str):
        try:
            content = parse_json(content, answer.place, limits)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{answer.place}: the answer of a worker is not JSON ({error.msg})."
            ) from None
    if not isinstance(content, dict):
        raise InputError(
            f"{answer.place}: an answer has no content (it may be in S3). {EXPORT_AGAIN}"
        )
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
