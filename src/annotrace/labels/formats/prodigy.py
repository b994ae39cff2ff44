"""Prodigy: the JSON lines of `prodigy db-out`.

A line is one answer. In the choice interface (`textcat.manual` with several labels) `accept` lists
what was chosen. In the binary one `label` is the question and `answer`, accept or reject, the
label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.formats.base import (
    Answer,
    Format,
    Questions,
    Skipped,
    as_text,
    item_name,
    objects,
    one_label,
)
from annotrace.labels.formats.documents import Document

_ANSWERS = ("accept", "reject", "ignore")


def _sniff(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("answer") in _ANSWERS
        and ("_input_hash" in record or "_task_hash" in record)
    )


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    for number, record in objects(document):
        place = document.place(number)
        meta = record.get("meta")
        fields = (meta if isinstance(meta, dict) else {}) | record
        name = item_name(item, ["_input_hash"], fields, place)
        said = _check_answer(record.get("answer"), place)
        by = as_text(record.get("_annotator_id")) or as_text(record.get("_session_id"))
        if said == "ignore":
            yield Skipped("ignored")
        elif "accept" in record or "options" in record:
            label = one_label(record.get("accept"), name, place)
            if said == "reject" or label is None:
                yield Skipped("rejected" if said == "reject" else "empty")
            else:
                yield Answer(number, name, by, label)
        elif questions.choose([_asked(record, place)], place) is not None:
            yield Answer(number, name, by, said)


def _check_answer(said: Any, place: str) -> str:
    if said not in _ANSWERS:
        raise InputError(
            f"{place}: the answer is {said!r}, and not accept, reject or ignore. Export the "
            "dataset again with `prodigy db-out`."
        )
    return str(said)


def _asked(record: dict[str, Any], place: str) -> str:
    """Name the question of a binary answer."""
    asked = as_text(record.get("label"))
    if asked is None:
        raise InputError(
            f"{place}: there is neither 'accept' (a choice) nor 'label' (a yes or no question), so "
            "this is no classification. Leave out such records."
        )
    return asked


PRODIGY = Format("prodigy", "Prodigy JSON lines", _sniff, _read)
