"""peerannot: `answers.json`, an object of tasks, each with the label that every worker gave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotrace.errors import InputError
from annotrace.labels.columns import names_items
from annotrace.labels.formats.base import (
    Answer,
    Format,
    Questions,
    Skipped,
    objects,
    one_label,
    part,
)
from annotrace.labels.formats.documents import Document


def _sniff(tasks: Any) -> bool:
    return (
        isinstance(tasks, dict)
        and any(tasks.values())
        and all(isinstance(answers, dict) and _are_labels(answers) for answers in tasks.values())
        and not names_items(list(tasks))
        and not names_items(list(next(iter(tasks.values()))))
    )


def _are_labels(answers: dict[str, Any]) -> bool:
    return not any(isinstance(label, dict) for label in answers.values())


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    if item is not None:
        raise InputError(f"{document.path}: tasks name the items. Leave out item= (--item).")
    for number, tasks in objects(document):
        for task in tasks:
            place = f"{document.path}, task {task[:60]!r}"
            for worker, answer in part(tasks, task, dict, place).items():
                label = one_label(answer, task, place)
                yield Skipped("empty") if label is None else Answer(number, task, worker, label)


PEERANNOT = Format("peerannot", "peerannot answers", _sniff, _read)
