"""Prodigy: the JSON lines of `prodigy db-out`.

A line is one answer. In the choice interface (`textcat.manual` with several labels) `accept` lists
the choices. In the binary interface `label` is the question, and `answer`, accept or reject, the
label.
"""

from __future__ import annotations

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
    as_text,
    records_of,
)

_ANSWERS = ("accept", "reject", "ignore")


def _sniff(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("answer") in _ANSWERS
        and ("_input_hash" in record or "_task_hash" in record)
    )


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    for record in records_of(document):
        fields = record.fields
        meta = fields.get("meta")
        known = {**meta, **fields} if isinstance(meta, dict) else fields
        name = record.item(item, ["_input_hash"], known)
        answer = _check_answer(record)
        annotator = as_text(fields.get("_annotator_id")) or as_text(fields.get("_session_id"))
        if answer == "ignore":
            yield Skipped("ignored")
        elif "accept" in fields or "options" in fields:
            if answer == "reject":
                yield Skipped("rejected")
            else:
                yield record.answer(name, annotator, fields.get("accept"))
        elif questions.choose({_question(record): answer}, record.place) is not None:
            yield Answer(record.number, name, annotator, answer)


def _check_answer(record: Record) -> str:
    answer = record.fields.get("answer")
    if answer not in _ANSWERS:
        raise InputError(
            f"{record.place}: the answer is {answer!r}, not accept, reject or ignore. Export the "
            "dataset again with `prodigy db-out`."
        )
    return str(answer)


def _question(record: Record) -> str:
    """Return the question of a binary answer."""
    question = as_text(record.fields.get("label"))
    if question is None:
        raise InputError(
            f"{record.place}: the record has neither 'accept' (a choice) nor 'label' (a binary "
            "question), so it is not a classification. Remove such records."
        )
    return question


PRODIGY = Format("prodigy", "Prodigy JSON lines", _sniff, _read)
