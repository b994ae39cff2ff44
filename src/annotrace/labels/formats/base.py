"""The interface of a format, and the steps that formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from annotrace.errors import InputError, first_few
from annotrace.labels.documents import EXPORT_AGAIN, Document

T = TypeVar("T")


class Answer(NamedTuple):
    """One label by one annotator, from the record of a given number.

    `annotator` is None if the file does not name the annotator; `is_truth` marks the true class
    of an item instead of a label. Of two answers to an item, the later one has the higher `order`;
    it is 0 if the file lists answers in the order in which they were given.
    """

    number: int
    item: str
    annotator: str | None
    label: str
    is_truth: bool = False
    order: int = 0


class Skipped(NamedTuple):
    """An answer that is skipped, with the reason, as in "2 cancelled"."""

    reason: str


Answers: TypeAlias = Iterator[Answer | Skipped]


@dataclass
class Questions:
    """The choice of the question to read: the one that the caller names, or the only one found."""

    wanted: str | None = None
    found: list[str] = field(default_factory=list)

    def choose(self, answers: Mapping[str, T], place: str) -> T | None:
        """Return the answer to the question to read, None if it was not answered."""
        self.found.extend(name for name in answers if name not in self.found)
        if self.wanted is None and len(self.found) > 1:
            raise InputError(
                f"{place}: there are several questions ({first_few(self.found, 10)}). Choose one "
                "with question= (--question on the command line)."
            )
        wanted = next(iter(self.found), "") if self.wanted is None else self.wanted
        return answers.get(wanted)

    def check_found(self, source: str) -> None:
        """Check that the named question was found."""
        if self.wanted is not None and self.wanted not in self.found:
            known = f"it has {first_few(self.found, 10)}" if self.found else "remove question="
            raise InputError(f"{source} has no question {self.wanted!r}; {known}.")


class Record(NamedTuple):
    """A JSON object of a document, or an object within it, with checked access to its fields."""

    number: int
    place: str
    fields: Mapping[str, Any]

    def part(self, name: str, kind: type, optional: bool = False) -> Any:
        """Return a field that must be a dict or list; an empty one if optional and missing."""
        value = self.fields.get(name)
        if value is None and optional:
            return kind()
        if not isinstance(value, kind):
            wanted = "an object" if kind is dict else "a list"
            raise InputError(f"{self.place}: field {name!r} is not {wanted}. {EXPORT_AGAIN}")
        return value

    def object(self, name: str, optional: bool = False) -> Record:
        """Return a field that must be an object."""
        return self._replace(fields=self.part(name, dict, optional))

    def objects(self, name: str, optional: bool = False) -> list[Record]:
        """Return a field that must be a list of objects."""
        listed = self.part(name, list, optional)
        if not all(isinstance(entry, dict) for entry in listed):
            raise InputError(f"{self.place}: not all of {name!r} are objects. {EXPORT_AGAIN}")
        return [self._replace(fields=entry) for entry in listed]

    def item(
        self, named: str | None, usual: Sequence[str], fields: Mapping[str, Any] | None = None
    ) -> str:
        """Return the name of the item: the field named by the caller, else the first usual one."""
        fields = self.fields if fields is None else fields
        candidates = usual if named is None else [named]
        for name in candidates:
            if value := as_text(fields.get(name)):
                return value
        filled = first_few([name for name, value in fields.items() if as_text(value)], 10)
        raise InputError(
            f"{self.place}: {' and '.join(map(repr, candidates))} cannot name the item, because it "
            f"is empty or not text. Fields with text: {filled or 'none'}. Choose the field that "
            "names the item with item= (--item on the command line)."
        )

    def answer(
        self, item: str, annotator: Any, values: Any, is_truth: bool = False, order: int = 0
    ) -> Answer | Skipped:
        """Return the answer with the one label in `values`, a value or list."""
        label = one_label(values, item, self.place)
        if label is None:
            return Skipped("empty")
        return Answer(self.number, item, as_text(annotator) or None, label, is_truth, order)


@dataclass(frozen=True)
class Format:
    """An export format of a labelling tool.

    Attributes
    ----------
    name : str
        For `format=` and `--from`.
    title : str
        For messages.
    sniff : callable
        Whether a record has this format. One of the first records is enough, so that damage to
        another one is reported as damage to this format.
    read : callable
        Given a document, the questions and the field that names items (or None), iterates over
        the answers.
    sniff_columns : callable
        Whether a csv or tsv file with these columns has this format.
    find_doubt : callable
        Describes why a record with this format may as well be something else, and what to do; None
        if it may not. It is not asked if the caller names the format.
    """

    name: str
    title: str
    sniff: Callable[[Any], bool]
    read: Callable[[Document, Questions, str | None], Answers]
    sniff_columns: Callable[[Sequence[str]], bool] = lambda columns: False
    find_doubt: Callable[[Any], str | None] = lambda record: None


def records_of(document: Document) -> Iterator[Record]:
    """Iterate over the records of a document."""
    for number, fields in document.objects():
        yield Record(number, document.place(number), fields)


def one_label(values: Any, item: str, place: str) -> str | None:
    """Return the label in a value or list, None if there is none; raise if there are several."""
    listed = values if isinstance(values, list) else [values]
    if len(listed) > 1:
        raise InputError(
            f"{place}: item {item[:60]!r} has several labels in one answer ("
            f"{first_few(map(_shown, listed))}), but an answer has one label. Keep one of them, or "
            "read a question with single answers with question= (--question)."
        )
    value = listed[0] if listed else None
    label = as_text(value)
    if label is None and value is not None:
        raise InputError(
            f"{place}: the answer for item {item[:60]!r} is {_shown(value)[:60]}, not a class. "
            "Read a question with single answers with question= (--question)."
        )
    return label or None


def as_text(value: Any) -> str | None:
    """Return text unchanged and booleans as in JSON; None for anything else."""
    if isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
