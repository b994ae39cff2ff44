"""The kind of values that a column has: whole numbers, scores, dates, addresses, text or names."""

from __future__ import annotations

import re
from enum import Enum

import numpy as np

from annotrace.labels.vocabulary import Names, as_text

# A kind is that of nearly all values, so that a single odd cell does not change it.
_NEARLY_ALL = 0.95
# The first distinct values show the kind as well as all of them.
_MAX_VALUES = 1000
# Names and file names are shorter, and have fewer words.
_LONG, _MANY_WORDS = 60, 4
# Of a longer text, only the beginning is looked at.
_MAX_LENGTH = 300


class Kind(Enum):
    """What the values of a column are."""

    WHOLE = "whole number"
    SCORE = "score"
    DATE = "date or time"
    URL = "url"
    FILE = "file name"
    EMAIL = "email"
    UUID = "uuid"
    LIST = "list"
    TEXT = "text"
    NAME = "name"


NUMBERS = (Kind.WHOLE, Kind.SCORE)
_NEVER_LABELS = (Kind.DATE, Kind.URL, Kind.EMAIL, Kind.UUID, Kind.LIST)

_ENDINGS = (
    "jpe?g|png|gif|tiff?|bmp|webp|heic|dcm|txt|pdf|docx?|html?|json|xml|wav|mp3|mp4|flac|ogg|avi"
)
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([ap]\.?m\.?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
_DAYS = "|".join(
    [
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}",
        r"(19|20)\d{2}[-/]\d{1,2}",
        r"\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})",
        r"(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
        r"([^\W\d]{2,10}[.,]?\s+)?\d{1,2}\.?\s+([^\W\d]{3,10}\.?,?|de\s+[^\W\d]{4,10}\s+de)\s+\d{4}",
        r"[^\W\d]{3,9}\.?\s+\d{1,2},?\s+\d{4}",
    ]
)
# In this order: the digits of a date may be those of a whole number, and these are scores too.
_PATTERNS = {
    Kind.DATE: rf"({_DAYS})([T,]?\s*{_CLOCK})?|{_CLOCK}",
    Kind.WHOLE: r"[+-]?\d+(\.0+)?",
    Kind.SCORE: r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*(%|s|sec|ms)?",
    Kind.URL: r"[a-z][a-z0-9+.-]*://\S+|www\.\S+",
    Kind.FILE: rf"\S.*\.({_ENDINGS})",
    Kind.EMAIL: r"[^@\s]+@[^@\s]+\.[^@\s]+",
    Kind.UUID: r"\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?",
    Kind.LIST: r"[\[{](.|\s)*",
}
_COMPILED = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}


def kind_of(names: Names) -> Kind:
    """Return the kind of the distinct values of a column.

    >>> kind_of(np.array(["3", "14"])), kind_of(np.array(["0.25", "1"]))
    (<Kind.WHOLE: 'whole number'>, <Kind.SCORE: 'score'>)
    >>> kind_of(np.array(["2024-03-01 10:22", "2024-03-02"]))
    <Kind.DATE: 'date or time'>
    """
    texts = [text[:_MAX_LENGTH].strip() for text in as_text(names[:_MAX_VALUES]).tolist()]
    for kind, pattern in _COMPILED.items():
        if np.mean([pattern.fullmatch(text) is not None for text in texts]) >= _NEARLY_ALL:
            return kind
    n_words = np.mean([len(text.split()) for text in texts])
    is_long = np.mean([len(text) for text in texts]) > _LONG
    return Kind.TEXT if is_long or n_words > _MANY_WORDS else Kind.NAME


def is_never_label(text: str) -> bool:
    """Whether a value is a date, an address, a random name or a list, which no class is."""
    text = text[:_MAX_LENGTH].strip()
    return any(_COMPILED[kind].fullmatch(text) for kind in _NEVER_LABELS)


def is_whole_number(text: str) -> bool:
    """Whether a value is a whole number."""
    return _COMPILED[Kind.WHOLE].fullmatch(text.strip()) is not None


def as_number(text: str) -> float:
    """Return the number that a whole number or score stands for, NaN if it is neither.

    >>> as_number("7"), as_number("0,5"), as_number("80 %"), as_number("none")
    (7.0, 0.5, 80.0, nan)
    """
    digits = re.match(r"[+-]?[\d.,]+([eE][+-]?\d+)?", text.strip())
    try:
        return float(digits[0].replace(",", ".")) if digits else float("nan")
    except ValueError:
        return float("nan")


def is_row_number(names: Names) -> bool:
    """Whether distinct whole numbers, in order of first appearance, merely count rows or time.

    They ascend, they are a range without a gap, or they are seconds or milliseconds since 1970.
    """
    numbers = np.array([as_number(text) for text in as_text(names).tolist()])
    steps = np.diff(numbers)
    is_range = numbers.max() - numbers.min() == len(numbers) - 1
    is_time = any(start <= numbers.min() and numbers.max() < 2 * start for start in (1e9, 1e12))
    return bool(np.all(steps > 0) or is_range or is_time)
