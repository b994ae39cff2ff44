"""What can be asked of an experiment: declared once, for both command lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Flag:
    """An option as a person types it.

    Attributes
    ----------
    name : str
        Of the field in `Options`.
    help : str
    read : callable
        From the text to the value.
    metavar : str
    choices : tuple of str
        The only values, if there are any.
    repeated : bool
        May be given several times.
    """

    name: str
    help: str
    read: Callable[[str], Any]
    metavar: str
    choices: tuple[str, ...] = ()
    repeated: bool = False

    @property
    def flag(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise ValueError("expected one at least")
    return words


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in _words(text))


def _whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in _words(text))


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected a whole number above 0")
    return number


_AS_PYTHON_HAS_IT = {"True": True, "False": False, "None": None}


def _assignment(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE, the value as JSON where it is any, or one of Python's three constants."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"expected NAME=VALUE, but got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, _AS_PYTHON_HAS_IT.get(value, value)


def _flag(default: Any, help: str, read: Callable[[str], Any], metavar: str, **more: Any) -> Any:
    about = {"help": help, "read": read, "metavar": metavar, **more}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Options:
    """What can be asked of an experiment; each leaves a plan as it is unless given."""

    protocol: str = _flag(
        "fast",
        "The published recipe, or ours: larger batches, fewer epochs, selection without truth.",
        str,
        "paper|fast",
        choices=("paper", "fast"),
    )
    methods: tuple[str, ...] = _flag((), "Only these, by comma.", _words, "A,B")
    seeds: int | None = _flag(None, "Draws or repetitions of each.", _count, "N")
    skills: tuple[float, ...] = _flag((), "Only these mean skills, by comma.", _numbers, "P,Q")
    densities: tuple[int, ...] = _flag(
        (), "Only so many labels an item, by comma.", _whole_numbers, "N,M"
    )
    select: str | None = _flag(
        None,
        "What the best epoch is chosen by on the held-out tenth. The paper says accuracy, not "
        "whether against truth or labels: truth is taken there, likelihood of labels with fast, "
        "and always by auto and crossfit.",
        str,
        "truth|labels|likelihood",
        choices=("truth", "labels", "likelihood"),
    )
    vanilla_decay: float | None = _flag(
        None, "L2 decay of the vanilla network, which the paper does not tell.", float, "X"
    )
    limit_items: int | None = _flag(None, "Only the first items, for a try.", _count, "N")
    set: tuple[tuple[str, Any], ...] = _flag(
        (),
        "A setting of every method that has it (epochs=5, backbone=resnet50); may be repeated.",
        _assignment,
        "NAME=VALUE",
        repeated=True,
    )


FLAGS = tuple(Flag(name=each.name, **each.metadata) for each in fields(Options))


def options_from(given: Mapping[str, Any]) -> Options:
    """Make options of what a command line read, leaving out what was not given."""
    typed: dict[str, Any] = {
        flag.name: tuple(given[flag.name]) if flag.repeated else given[flag.name]
        for flag in FLAGS
        if given.get(flag.name) is not None
    }
    return Options(**typed)
