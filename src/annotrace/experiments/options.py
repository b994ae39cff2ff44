"""Options of an experiment, declared once for both command lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


def _values(text: str) -> tuple[str, ...]:
    values = tuple(value.strip() for value in text.split(",") if value.strip())
    if not values:
        raise ValueError("expected at least one value")
    return values


def _floats(text: str) -> tuple[float, ...]:
    return tuple(float(value) for value in _values(text))


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(value) for value in _values(text))


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected a whole number larger than 0")
    return number


def _assignment(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; the value is JSON, a constant of Python, or else text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"expected NAME=VALUE, but got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, {"True": True, "False": False, "None": None}.get(value, value)


def _option(default: Any, read: Callable[[str], Any], metavar: str, help: str, **more: Any) -> Any:
    return field(default=default, metadata=dict(read=read, metavar=metavar, help=help, **more))


@dataclass(frozen=True)
class Options:
    """Choices of the user; an option that is not given changes nothing."""

    protocol: str = _option(
        "fast",
        str,
        "paper|fast",
        "The published recipe, or ours: larger batches, fewer epochs, selection without truth.",
        choices=("paper", "fast"),
    )
    methods: tuple[str, ...] = _option(
        (), _values, "A,B", "Only these methods, separated by commas."
    )
    seeds: int | None = _option(None, _count, "N", "Number of draws or repetitions.")
    skills: tuple[float, ...] = _option(
        (), _floats, "P,Q", "Only these mean skills, separated by commas."
    )
    densities: tuple[int, ...] = _option(
        (), _integers, "N,M", "Only these numbers of labels per item, separated by commas."
    )
    select: str | None = _option(
        None,
        str,
        "truth|labels|likelihood",
        "Criterion for the best epoch, measured on the held-out tenth. The paper says accuracy, "
        "but not whether against truth or labels. Default: truth with paper, likelihood of labels "
        "with fast. auto and crossfit always use the likelihood.",
        choices=("truth", "labels", "likelihood"),
    )
    vanilla_decay: float | None = _option(
        None, float, "X", "L2 decay of the vanilla network, which the paper does not report."
    )
    limit_items: int | None = _option(None, _count, "N", "Use only the first N items, for a trial.")
    set: tuple[tuple[str, Any], ...] = _option(
        (),
        _assignment,
        "NAME=VALUE",
        "A setting of every method that has it (epochs=5, backbone=resnet50); may be repeated.",
        repeated=True,
    )

    def settings(self, method: str) -> dict[str, Any]:
        """Return the settings that were requested, for one method."""
        requested: dict[str, Any] = dict(self.set)
        if self.select is not None:
            requested["select"] = self.select
        if method == "vanilla" and self.vanilla_decay is not None:
            requested["weight_decay"] = self.vanilla_decay
        return requested


class Flag(NamedTuple):
    """An option as typed: the metadata of a field of `Options`."""

    name: str
    read: Callable[[str], Any]
    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    repeated: bool = False

    @property
    def flag(self) -> str:
        """The option as typed."""
        return "--" + self.name.replace("_", "-")


FLAGS = tuple(Flag(each.name, **each.metadata) for each in fields(Options))


def options_from(given: Mapping[str, Any]) -> Options:
    """Return the options that a command line read; None means not given."""
    typed: dict[str, Any] = {
        flag.name: tuple(given[flag.name]) if flag.repeated else given[flag.name]
        for flag in FLAGS
        if given.get(flag.name) is not None
    }
    return Options(**typed)
