"""What a format is, and the few steps that all of them share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from annotrace.errors import InputError, first_few
from annotrace.labels.formats.documents import Document


class Answer(NamedTuple):
    """One label by one person.

    Attributes
    ----------
    number : int
        The record of the document that it stands in.
    item : str
    annotator : str or None
        None where the file names nobody.
    label : str
    is_truth : bool
        Whether it is the known truth of the item, and no label to learn from.
    """

    number: int
    item: str
    annotator: str | None
    label: str
    is_truth: bool = False


class Skipped(NamedTuple):
    """An answer that is left out, and why, as in "2 cancelled"."""

    reason: str


@dataclass
class Questions:
    """Picks the one question whose answers are read, and remembers those it has met.

    Attributes
    ----------
    wanted : str or None
        The question that the caller named.
    met : list of str
    """

    wanted: str | None = None
    met: list[str] = field(default_factory=list)

    def choose(self, names: Iterable[str], place: str) -> str | None:
        """Give the question to read of those answered at a place; None if it is not among them."""
        names = list(names)
        self.met.extend(name for name in dict.fromkeys(names) if name not in self.met)
        if self.wanted is None and len(self.met) > 1:
            raise InputError(
                f"{place}: there are several questions ({first_few(self.met, 10)}). Say which to "
                "read with question= (--question on the command line)."
            )
        chosen = self.wanted if self.wanted is not None else next(iter(self.met), None)
        return chosen if chosen in names else None

    def check_found(self, source: str) -> None:
        """Check that the question named was met in the end."""
        if self.wanted is not None and self.wanted not in self.met:
            known = f"it has {first_few(self.met, 10)}" if self.met else "leave out question="
            raise InputError(f"{source} has no question {self.wanted!r}; {known}.")


Reader = Callable[[Document, Questions, str | None], Iterator[Answer | Skipped]]


@dataclass(frozen=True)
class Format:
    """A format that labels come in.

    Attributes
    ----------
    name : str
        For `format=` and `--from`.
    title : str
        For messages.
    sniff : callable
        Given a record, tells whether it is of this format. One of the first records is enough,
        so that damage to another gets a message that knows the format.
    read : callable
        Given a document, the questions and the field that names items (or None), gives the
        answers one by one.
    """

    name: str
    title: str
    sniff: Callable[[Any], bool]
    read: Reader


def objects(document: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the records of a document with their numbers; each must be a JSON object."""
    for number, record in document.records():
        if not isinstance(record, dict):
            raise InputError(f"{document.place(number)}: not a JSON object. {EXPORT_AGAIN}")
        yield number, record


def part(
    record: Mapping[str, Any], name: str, kind: type, place: str, optional: bool = False
) -> Any:
    """Give a field that must be an object or a list; an empty one if it may be missing and is."""
    value = record.get(name)
    if value is None and optional:
        return kind()
    if not isinstance(value, kind):
        wanted = "an object" if kind is dict else "a list"
        raise InputError(f"{place}: field {name!r} is not {wanted}. {EXPORT_AGAIN}")
    return value


def entries(
    record: Mapping[str, Any], name: str, place: str, optional: bool = False
) -> list[dict[str, Any]]:
    """Give a field that must be a list of objects."""
    listed: list[dict[str, Any]] = part(record, name, list, place, optional)
    if not all(isinstance(entry, dict) for entry in listed):
        raise InputError(f"{place}: not all of {name!r} are objects. {EXPORT_AGAIN}")
    return listed


def item_name(
    named: str | None, usual: Sequence[str], fields: Mapping[str, Any], place: str
) -> str:
    """Name an item by the field that the caller named, else by the first usual one that is filled.

    Parameters
    ----------
    named : str or None
    usual : sequence of str
    fields : mapping of field to value
    place : str
        Where the record is, for a message.
    """
    for name in usual if named is None else [named]:
        value = as_text(fields.get(name))
        if value:
            return value
    filled = [name for name, value in fields.items() if as_text(value)]
    raise InputError(
        f"{place}: {' and '.join(map(repr, usual if named is None else [named]))} cannot name the "
        f"item, being empty or no text; filled are {first_few(filled, 10) or 'none'}. Say which "
        "field names the item with item= (--item on the command line)."
    )


def one_label(values: Any, item: str, place: str) -> str | None:
    """Give the label among one value or a list; None if there is none, an error if several."""
    listed = values if isinstance(values, list) else [values]
    if len(listed) > 1:
        raise InputError(
            f"{place}: item {item[:60]!r} has several labels in one answer ("
            f"{first_few(map(_shown, listed))}), and this library learns from one. Keep one of "
            "them, or read a question that takes one answer with question= (--question)."
        )
    value = listed[0] if listed else None
    label = as_text(value)
    if label is None and value is not None:
        raise InputError(
            f"{place}: the answer for item {item[:60]!r} is {_shown(value)[:60]}, and not a class. "
            "Read a question with single answers with question= (--question)."
        )
    return label or None


def as_text(value: Any) -> str | None:
    """Give text as it is and true or false as JSON writes it; None for what is no single value."""
    if isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


EXPORT_AGAIN = "Export the file again, or say what it is with format= (--from)."
