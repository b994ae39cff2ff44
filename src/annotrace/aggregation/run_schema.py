"""What a saved run may hold: the fields of run.json and the arrays of model.safetensors.

Nothing of a run is used before it has been checked against this. What else `fit` sets, each class
declares as `saved_attributes`, in the same terms. A field that is not declared is an error: another
version that writes more has another format number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.parameters import Count, Fraction, Natural, NotNegative, Number, Rule, check_value
from annotrace.storage import check_same_names

CODES = ("item", "annotator", "label", "truth")
VOCABULARIES = ("items", "annotators", "classes")
NEVER_SAVED = ("callbacks", "checkpoint", "device")
"""Parameters that belong to the caller: a file may not choose where checkpoints are written."""

MAX_ROW = 2**26
"""Numbers in one row of features, or in one image."""

TOLERANCE = 1e-4
"""Rows of float32 that sum to one differ from it by less."""

ShortText: TypeAlias = Annotated[str, Rule("a short text", lambda text: len(text) < 5000)]

_KINDS = {"f": "numbers", "i": "whole numbers", "b": "booleans"}


class CountsRecord(TypedDict):
    """How many there are of each."""

    items: Count
    annotators: Count
    labels: Count
    classes: Count


class EpochRecord(TypedDict):
    """The fields of `annotrace.training.Epoch`."""

    number: Count
    loss: Number
    held_out: Number | None
    seconds: NotNegative


class EncoderFields(TypedDict):
    """The fields of `annotrace.data.EncoderRecord`."""

    name: ShortText
    kind: Literal["text", "pairs", "images"]
    origin: Literal["hub", "folder", "function"]
    fingerprint: ShortText
    revision: ShortText | None


class CandidateScore(TypedDict):
    """How a candidate predicts gold items that it has not learned from, and its weight."""

    name: str
    weight: Fraction
    accuracy: Fraction
    log_loss: NotNegative


class RunRecord(TypedDict):
    """The fields of run.json that every run has."""

    format: Natural
    method: Annotated[str, Rule("a short name", lambda name: len(name) < 100)]
    params: dict[str, Any]
    learned: dict[str, Any]
    positional: bool
    is_vote: bool
    counts: CountsRecord
    versions: dict[str, str]
    diagnosis: dict[str, Any] | None
    sha256: Annotated[
        str, Rule("64 hexadecimal digits", lambda text: bool(re.fullmatch("[0-9a-f]{64}", text)))
    ]


class AggregationRecord(RunRecord):
    """The fields of the run of an aggregation."""

    kind: Literal["aggregation"]
    ties: Natural


class ClassifierRecord(RunRecord):
    """The fields of the run of a classifier."""

    kind: Literal["classifier"]
    custom_backbone: bool
    input_kind: Literal["array", "text"]
    input_shape: Annotated[
        list[Count],
        Rule(
            f"1 to 4 sizes whose product is at most {MAX_ROW:,}",
            lambda shape: 1 <= len(shape) <= 4 and math.prod(shape) <= MAX_ROW,
        ),
    ]
    named_rows: bool
    feature_names: list[str]
    encoder: EncoderFields | None
    history: list[EpochRecord]


RECORDS: dict[str, type] = {"aggregation": AggregationRecord, "classifier": ClassifierRecord}


@dataclass(frozen=True)
class Array:
    """An array of finite numbers or of booleans.

    Attributes
    ----------
    kind : {"f", "i", "b"}
        Of the dtype.
    shape : tuple of str or None
        "items", "annotators" or "classes" in each dimension; None is any size.
    rule : Rule, optional
        What holds for the values.
    """

    kind: Literal["f", "i", "b"]
    shape: tuple[str | None, ...]
    rule: Rule | None = None

    def check(self, name: str, array: Any, sizes: Mapping[str, int]) -> None:
        """Raise an `InputError` if an array is not as described."""
        wanted = tuple(None if size is None else sizes[size] for size in self.shape)
        if (
            not isinstance(array, np.ndarray)
            or array.dtype.kind != self.kind
            or array.ndim != len(wanted)
            or any(size not in (None, n) for size, n in zip(wanted, array.shape, strict=True))
        ):
            shape = "({})".format(", ".join("any" if n is None else str(n) for n in wanted))
            got = f"{array.dtype} of shape {array.shape}" if hasattr(array, "dtype") else "none"
            raise InputError(
                f"Expected `{name}` to be {_KINDS[self.kind]} of shape {shape}, but got {got}."
            )
        if self.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"Expected `{name}` to be finite, but it has NaN or infinity.")
        if self.rule is not None and not self.rule.holds(array):
            raise InputError(f"Expected `{name}` to be {self.rule.description}.")


def are_distributions(array: NDArray[Any]) -> bool:
    """Whether the last axis of an array holds probabilities that sum to one."""
    # A share of nothing, summed in another order, may be a hair below 0.
    in_range = bool(np.all((array >= -1e-12) & (array <= 1 + TOLERANCE)))
    return in_range and bool(np.all(np.abs(array.sum(-1) - 1) <= TOLERANCE))


DISTRIBUTIONS = Rule("probabilities that sum to one", are_distributions)
NOT_NEGATIVE = Rule("0 or more", lambda array: bool((array >= 0).all()))
FRACTIONS = Rule("from 0 to 1", lambda array: bool(((array >= 0) & (array <= 1 + TOLERANCE)).all()))

RESULT: dict[str, Array] = {
    "posterior": Array("f", ("items", "classes"), DISTRIBUTIONS),
    "estimate": Array("i", ("items",)),
    "prior": Array("f", ("classes",), DISTRIBUTIONS),
    "gold": Array("i", ("items",)),
    "prior_counts": Array("f", ("annotators", "classes", "classes"), NOT_NEGATIVE),
    "held_out": Array("f", ("items", "classes"), DISTRIBUTIONS),
}
PRIOR_BY_ITEM = Array("f", ("items", "classes"), DISTRIBUTIONS)
"""The prior of a method whose classifier has contributed to the posterior."""


def check_fields(
    given: Mapping[str, Any],
    wanted: Mapping[str, Any],
    *,
    optional: tuple[str, ...] = (),
    sizes: Mapping[str, int] | None = None,
) -> None:
    """Raise an `InputError` unless fields have the names and the values that are wanted.

    Parameters
    ----------
    given : mapping from name to value
    wanted : mapping from name to annotation or Array
    optional : tuple of str
        Names that may be missing.
    sizes : mapping, optional
        What the names in the shape of an `Array` stand for.
    """
    check_same_names(given, wanted, optional=optional)
    for name, value in given.items():
        if isinstance(wanted[name], Array):
            wanted[name].check(name, value, sizes or {})
        else:
            check_value(name, value, wanted[name])
