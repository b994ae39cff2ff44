"""Exports of labelling tools: which tool wrote them, and their answers as columns."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotrace.errors import InputError
from annotrace.labels.building import Columns
from annotrace.labels.coding import Coded
from annotrace.labels.formats import FORMATS, Format
from annotrace.labels.formats.base import Answer, Questions, Skipped
from annotrace.labels.formats.documents import Document
from annotrace.labels.vocabulary import TEXT, encode

TABLE = "table"


@dataclass(frozen=True)
class Request:
    """What the caller says about an export; see `LabelTable.read`."""

    format: str | None = None
    question: str | None = None
    annotator_name: str | None = None


class Imported(NamedTuple):
    """What was read of an export: for those who run the command.

    Attributes
    ----------
    title : str
        The format.
    question : str or None
        The question whose answers were read, where the format has several.
    skipped : mapping of reason to count
    """

    title: str
    question: str | None
    skipped: Mapping[str, int]


@dataclass
class _Gathered:
    """Answers of several documents, one after the other."""

    items: list[str] = field(default_factory=list)
    annotators: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def add(self, answer: Answer, annotator: str) -> None:
        self.items.append(answer.item)
        self.annotators.append(annotator)
        self.labels.append(answer.label)
        self.numbers.append(answer.number)


def find_format(
    files: Sequence[Path], documents: Sequence[Document | None], named: str | None
) -> Format | None:
    """Tell which tool wrote some files; None if they are tables.

    Parameters
    ----------
    files : sequence of Path
    documents : sequence of Document or None
        The files taken apart; None stands for what can only be a table.
    named : str or None
        The format that the caller named.
    """
    if named is not None:
        return _by_name(named)
    found = [None if document is None else _sniff(document) for document in documents]
    for file, other in zip(files, found, strict=True):
        if other is not found[0]:
            raise InputError(
                f"{file} is {_title(other)} and {files[0]} is {_title(found[0])}. Read them apart, "
                "or say what they are with format= (--from)."
            )
    return found[0]


def _sniff(document: Document) -> Format | None:
    return next((known for known in FORMATS if any(map(known.sniff, document.head))), None)


def _title(format: Format | None) -> str:
    return "a table" if format is None else format.title


def _by_name(name: str) -> Format | None:
    known = {TABLE: None} | {format.name: format for format in FORMATS}
    if name not in known:
        raise InputError(f"There is no format {name!r}; there are {', '.join(sorted(known))}.")
    return known[name]


def import_answers(
    documents: Sequence[Document], format: Format, request: Request, item: str | None
) -> tuple[Columns, Imported]:
    """Read the answers of documents of one format, and count what is left out."""
    questions, skipped = Questions(request.question), Counter[str]()
    given, truth = _Gathered(), _Gathered()
    of_file = names_of_files([document.path for document in documents])
    for document, file_name in zip(documents, of_file, strict=True):
        for part in (given, truth):
            part.starts.append(len(part.items))
        for answer in format.read(document, questions, item):
            if isinstance(answer, Skipped):
                skipped[answer.reason] += 1
            elif answer.is_truth:
                truth.add(answer, "")
            else:
                name = answer.annotator or request.annotator_name or file_name
                given.add(answer, _check_named(name, document.place(answer.number)))
    source = str(documents[0].path)
    questions.check_found(source)
    if not given.items:
        raise InputError(_nothing(source, format, skipped))
    asked = questions.wanted or next(iter(questions.met), None)
    return _columns(given, truth, documents), Imported(format.title, asked, dict(skipped))


def names_of_files(paths: Sequence[Path]) -> list[str | None]:
    """Give whom each of several files may be named after; nobody if there is one.

    Where files are all named alike, as those that CVAT packs into an archive, it is the folder.
    """
    if len(paths) == 1:
        return [None]
    stems = [Path(path.name.removesuffix(".gz")).stem for path in paths]
    if len(set(stems)) == len(paths):
        return list(stems)
    folders = [path.absolute().parent.name for path in paths]
    return list(folders) if len(set(folders)) == len(paths) else [str(path) for path in paths]


def _check_named(name: str | None, place: str) -> str:
    if name is None:
        raise InputError(
            f"{place}: nobody is named as the annotator. Say who it is with "
            "annotator_name= (--annotator-name), or give a file for each annotator, named after "
            "them."
        )
    return name


def _columns(given: _Gathered, truth: _Gathered, documents: Sequence[Document]) -> Columns:
    def where(row: int, role: str) -> str:
        part = truth if role == "truth" else given
        document = documents[bisect_right(part.starts, row) - 1]
        what = "item" if role == "item" else f"{role} of item"
        return f"{document.place(part.numbers[row])}, {what} {part.items[row][:60]!r}"

    items = _coded(given.items + truth.items)
    n_labels = len(given.items)
    return Columns(
        item=Coded(items.codes[:n_labels], items.names),
        annotator=_coded(given.annotators).in_order(),
        label=_coded(given.labels),
        where=where,
        truth=_coded(truth.labels) if truth.items else None,
        truth_item=items.codes[n_labels:],
    )


def _coded(names: list[str]) -> Coded:
    return Coded(*encode(np.array(names, dtype=TEXT)))


def _nothing(source: str, format: Format, skipped: Mapping[str, int]) -> str:
    left_out = f" but {tell_skipped(skipped)}" if skipped else ""
    return (
        f"{source} is read as {format.title} and has no labels of items{left_out}. Export it with "
        "answers that are classes, or say what it is with format= (--from)."
    )


def tell_skipped(skipped: Mapping[str, int]) -> str:
    """Tell what was left out, as in "3 answers skipped (2 cancelled, 1 draft)"."""
    total = sum(skipped.values())
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    return f"{total:,} answer{'s' if total > 1 else ''} skipped ({reasons})"
