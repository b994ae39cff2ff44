"""peerannot: `answers.json`, an object of tasks, each with the label of every worker."""

from __future__ import annotations

from typing import Any

from annotrace.errors import InputError, first_few
from annotrace.labels.columns import has_item_column
from annotrace.labels.documents import Document
from annotrace.labels.formats.base import Answers, Format, Questions, records_of
from annotrace.labels.pandas_objects import wide_orient


def _sniff(tasks: Any) -> bool:
    return (
        isinstance(tasks, dict)
        and any(tasks.values())
        and all(isinstance(answers, dict) for answers in tasks.values())
        and not any(isinstance(label, dict) for task in tasks.values() for label in task.values())
        and not has_item_column(list(tasks))
        and not has_item_column(list(next(iter(tasks.values()))))
        and wide_orient(tasks) != "columns"
    )


def _find_doubt(tasks: Any) -> str | None:
    if wide_orient(tasks) != "unclear":
        return None
    outer, inner = list(tasks), list(next(iter(tasks.values())))
    return (
        f"either {first_few(outer, 2)} or {first_few(inner, 2)} are the items, since everyone may "
        "have labelled everything. If the former are, as in peerannot, pass format='peerannot' "
        "(--from peerannot); if the latter are, as in a frame of pandas with one column per "
        "annotator, pass format='table' (--from table)"
    )


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    if item is not None:
        raise InputError(f"{document.path}: the tasks name the items. Remove item= (--item).")
    for record in records_of(document):
        for name in record.fields:
            task = record._replace(place=f"{document.path}, task {name[:60]!r}")
            for worker, answer in task.part(name, dict).items():
                yield task.answer(name, worker, answer)


PEERANNOT = Format("peerannot", "peerannot answers", _sniff, _read, find_doubt=_find_doubt)
