"""Prodigy: the JSON lines of `prodigy db-out`.

A line is one answer. In the choice interface (`textcat.manual` with several labels) `accept` lists
the choices. In the binary interface `label` is the question, and `answer`, accept or reject, the
label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.documents import Document
from annotrace.labels.formats.base import (
    Answer,
    Format,
    Questions,
    Skipped,
    as_text,
    item_name,
    one_label,
)

_ANSWERS = ("accept", "reject", "ignore")


def _sniff(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("answer") in _ANSWERS
        and ("_input_hash" in record or "_task_hash" in record)
    )


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    for number, record in document.objects():
        place = document.place(number)
        meta = record.get("meta")
        fields = (meta if isinstance(meta, dict) else {}) | record
        name = item_name(item, ["_input_hash"], fields, place)
        answer = _check_answer(record.get("answer"), place)
        by = as_text(record.get("_annotator_id")) or as_text(record.get("_session_id"))
        if answer == "ignore":
            yield Skipped("ignored")
        elif "accept" in record or "options" in record:
            label = one_label(record.get("accept"), name, place)
            if answer == "reject" or label is None:
                yield Skipped("rejected" if answer == "reject" else "empty")
            else:
                yield Answer(number, name, by, label)
        elif questions.choose([_question(record, place)], place) is not None:
            yield Answer(number, name, by, answer)


def _check_answer(answer: Any, place: str) -> str:
    if answer not in _ANSWERS:
        raise InputError(
            f"{place}: the answer is {answer!r}, not accept, reject or ignore. Export the "
            "dataset again with `prodigy db-out`."
        )
    return str(answer)


def _question(record: dict[str, Any], place: str) -> str:
    """Return the question of a binary answer."""
    asked = as_text(record.get("label"))
    if asked is None:
        raise InputError(
            f"{place}: the record has neither 'accept' (a choice) nor 'label' (a binary question), "
            "so it is not a classification. Remove such records."
        )
    return asked


PRODIGY = Format("prodigy", "Prodigy JSON lines", _sniff, _read)
