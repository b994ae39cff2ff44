"""Validation of values by type annotations: parameters in `fit`, and what a saved run holds."""

from __future__ import annotations

import math
import reprlib
import types
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from os import PathLike
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

from annotrace.errors import InputError


@dataclass(frozen=True)
class Rule:
    """A constraint on a number beyond its type: a description and a predicate."""

    description: str
    holds: Callable[[Any], bool]


Count: TypeAlias = Annotated[int, Rule("a whole number larger than 0", lambda n: n > 0)]
AtLeastTwo: TypeAlias = Annotated[int, Rule("a whole number of at least 2", lambda n: n >= 2)]
Number: TypeAlias = Annotated[float, Rule("a number", math.isfinite)]
Positive: TypeAlias = Annotated[
    float, Rule("a number larger than 0", lambda x: x > 0 and math.isfinite(x))
]
NotNegative: TypeAlias = Annotated[
    float, Rule("a number of at least 0", lambda x: x >= 0 and math.isfinite(x))
]
Fraction: TypeAlias = Annotated[float, Rule("a number from 0 to 1", lambda x: 0 <= x <= 1)]
ProperFraction: TypeAlias = Annotated[
    float, Rule("a number of at least 0 and below 1", lambda x: 0 <= x < 1)
]

Natural: TypeAlias = Annotated[int, Rule("a whole number of at least 0", lambda n: n >= 0)]
Seed: TypeAlias = Natural | np.random.Generator | np.random.RandomState | None

_DESCRIPTIONS = {
    type(None): ["None"],
    bool: ["True", "False"],
    int: ["a whole number"],
    float: ["a number"],
    str: ["text"],
    PathLike: ["a path"],
    np.random.RandomState: ["a random state"],
}
_NUMBERS: dict[Any, type] = {int: Integral, float: Real}
# What a file holds may be long, or nested more deeply than `repr` can follow.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def check_parameters(owner: Any) -> None:
    """Raise an `InputError` for the first field of a dataclass that does not fit its annotation."""
    for name, wanted in field_types(owner.__class__).items():
        check_value(name, getattr(owner, name), wanted)


def check_value(name: str, value: Any, wanted: Any) -> None:
    """Raise an `InputError` if a value does not match an annotation."""
    if not _fits(value, wanted):
        raise InputError(
            f"Expected `{name}` to be {_describe(wanted)}, but got {_SHORT.repr(value)}."
        )


@cache
def field_types(owner: type) -> dict[str, Any]:
    """Return the annotations of a dataclass or a `TypedDict`."""
    hints = get_type_hints(owner, include_extras=True)
    names = hints if is_typeddict(owner) else [field.name for field in fields(owner)]
    return {name: hints[name] for name in names}


def _fits(value: Any, wanted: Any) -> bool:
    if wanted is Any:
        return True
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is Annotated:
        return _fits(value, parts[0]) and all(rule.holds(value) for rule in parts[1:])
    if origin is list:
        return isinstance(value, list) and all(_fits(entry, parts[0]) for entry in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(entry, parts[1]) for entry in value.values())
    if is_typeddict(wanted):
        hints = field_types(wanted)
        return (
            isinstance(value, dict)
            and value.keys() == hints.keys()
            and all(_fits(value[name], hint) for name, hint in hints.items())
        )
    is_bool = isinstance(value, bool | np.bool_)
    if wanted is bool:
        return is_bool
    if wanted is float and isinstance(value, int) and abs(value) >= 2**63:
        # torch converts no integer of more than 64 bits to a float.
        return False
    if wanted in _NUMBERS:
        return isinstance(value, _NUMBERS[wanted]) and not is_bool
    return isinstance(value, origin or wanted)


def _describe(wanted: Any) -> str:
    """Describe the valid values: "a number larger than 0, 'auto' or None"."""
    options = _options(wanted)
    return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"


def _options(wanted: Any) -> list[str]:
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return [option for part in parts for option in _options(part)]
    if origin is Literal:
        return [repr(part) for part in parts]
    if origin is Annotated:
        return [rule.description for rule in parts[1:]]
    if origin in (list, dict) and parts[-1] is not Any:
        return [f"a {origin.__name__} whose values are each {_describe(parts[-1])}"]
    if is_typeddict(wanted):
        return [f"a dict with the keys {', '.join(field_types(wanted))}"]
    kind = origin or wanted
    return _DESCRIPTIONS.get(kind) or [f"a {kind.__name__.lower()}"]
