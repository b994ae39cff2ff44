"""The interface of a format, and the steps that formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from annotrace.errors import InputError, first_few
from annotrace.labels.documents import EXPORT_AGAIN, Document


class Answer(NamedTuple):
    """One label by one annotator.

    Attributes
    ----------
    number : int
        The number of its record in the document.
    item : str
    annotator : str or None
        None if the file does not name the annotator.
    label : str
    is_truth : bool
        Whether it is the true class of the item instead of a label.
    """

    number: int
    item: str
    annotator: str | None
    label: str
    is_truth: bool = False


class Skipped(NamedTuple):
    """An answer that is skipped, with the reason, as in "2 cancelled"."""

    reason: str


@dataclass
class Questions:
    """The choice of the question whose answers are read.

    Attributes
    ----------
    wanted : str or None
        The question that the caller names.
    found : list of str
        All questions found so far.
    """

    wanted: str | None = None
    found: list[str] = field(default_factory=list)

    def choose(self, names: Iterable[str], place: str) -> str | None:
        """Return the question to read among those answered at a place, or None."""
        names = list(names)
        self.found.extend(name for name in dict.fromkeys(names) if name not in self.found)
        if self.wanted is None and len(self.found) > 1:
            raise InputError(
                f"{place}: there are several questions ({first_few(self.found, 10)}). Choose one "
                "with question= (--question on the command line)."
            )
        chosen = self.wanted if self.wanted is not None else next(iter(self.found), None)
        return chosen if chosen in names else None

    def check_found(self, source: str) -> None:
        """Check that the named question was found."""
        if self.wanted is not None and self.wanted not in self.found:
            known = f"it has {first_few(self.found, 10)}" if self.found else "remove question="
            raise InputError(f"{source} has no question {self.wanted!r}; {known}.")


Reader = Callable[[Document, Questions, str | None], Iterator[Answer | Skipped]]


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
    """

    name: str
    title: str
    sniff: Callable[[Any], bool]
    read: Reader


def part(
    record: Mapping[str, Any], name: str, kind: type, place: str, optional: bool = False
) -> Any:
    """Return a field that must be an object or a list; an empty one if optional and missing."""
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
    """Return a field that must be a list of objects."""
    listed: list[dict[str, Any]] = part(record, name, list, place, optional)
    if not all(isinstance(entry, dict) for entry in listed):
        raise InputError(f"{place}: not all of {name!r} are objects. {EXPORT_AGAIN}")
    return listed


def item_name(
    named: str | None, usual: Sequence[str], fields: Mapping[str, Any], place: str
) -> str:
    """Return the name of an item: the field that the caller names, else the first usual one.

    Parameters
    ----------
    named : str or None
    usual : sequence of str
    fields : mapping of field to value
    place : str
        The record, for messages.
    """
    for name in usual if named is None else [named]:
        value = as_text(fields.get(name))
        if value:
            return value
    filled = first_few([name for name, value in fields.items() if as_text(value)], 10)
    raise InputError(
        f"{place}: {' and '.join(map(repr, usual if named is None else [named]))} cannot name the "
        f"item, because it is empty or not text. Fields with text: {filled or 'none'}. Choose the "
        "field that names the item with item= (--item on the command line)."
    )


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
