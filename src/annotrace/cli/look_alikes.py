"""Names that are nearly equal, and seldom meant to differ."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any


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


def essence(name: str) -> str:
    """Give what is left of a name without what people take no notice of."""
    folded = "".join(name.casefold().split())
    # What most names do not need is left out: there may be millions.
    if not folded.isascii():
        folded = unicodedata.normalize("NFC", folded)
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", folded) if ".0" in folded else folded
