"""Names that are nearly equal, and seldom meant to differ."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

# Pairs of names that are compared letter by letter at most: a second or two.
_PAIRS = 200_000
_TYPO = 0.8


def nearly_equal(names: Iterable[Any]) -> list[list[str]]:
    """Group names that differ only in capitals, spaces, a final .0 or how accents are encoded."""
    names = list(map(str, names))
    essences = list(map(essence, names))
    if len(set(essences)) == len(names):
        return []
    groups: dict[str, list[str]] = {}
    for name, key in zip(names, essences, strict=True):
        groups.setdefault(key, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def look_alikes(names: Iterable[str], known: Iterable[Any]) -> Mapping[str, str]:
    """Give the known name that each of some others is nearly equal to, or that it misspells.

    Names with other digits are other names: `worker 12` is no misspelt `worker 13`.
    """
    names = list(names)
    by_essence = {essence(name): name for name in map(str, known)}
    letters = list(by_essence) if len(names) * len(by_essence) <= _PAIRS else []
    found = {}
    for name in names:
        key = essence(name)
        alike = [key] if key in by_essence else get_close_matches(key, letters, 3, _TYPO)
        nearest = next((other for other in alike if _digits(other) == _digits(key)), None)
        if nearest is not None:
            found[name] = by_essence[nearest]
    return found


def essence(name: str) -> str:
    """Give what is left of a name without what people take no notice of."""
    folded = "".join(name.casefold().split())
    # What most names do not need is left out: there may be millions.
    if not folded.isascii():
        folded = unicodedata.normalize("NFC", folded)
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", folded) if ".0" in folded else folded


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
