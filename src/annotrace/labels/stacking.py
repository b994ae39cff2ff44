"""Tables that come in several files: their rows one below the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotrace.errors import InputError, first_few
from annotrace.labels.coding import Coded, merge
from annotrace.labels.frames import Sheet


@dataclass(frozen=True)
class _Stack(Sheet):
    """A sheet made of others, which name its cells."""

    sheets: Sequence[Sheet] = ()
    starts: Sequence[int] = ()

    def cell(self, row: int, column: Any) -> str:
        """Name a cell as the sheet that it came from does."""
        which = bisect_right(self.starts, row) - 1
        return self.sheets[which].cell(row - self.starts[which], column)


def stack_sheets(sheets: Sequence[Sheet]) -> Sheet:
    """Put the rows of sheets with the same columns, in any order, one below the other."""
    first = sheets[0]
    for sheet in sheets[1:]:
        if set(sheet.columns) != set(first.columns):
            other = set(sheet.columns) ^ set(first.columns)
            raise InputError(
                f"{sheet.source} and {first.source} have different columns "
                f"({first_few(sorted(map(str, other)))} stand in one of them). Read them apart, "
                "or give them the same columns."
            )

    def column(name: Any) -> Coded:
        codes, names = merge([sheet.column(name) for sheet in sheets])
        return Coded(np.concatenate(codes), names)

    lengths = [len(sheet.column(first.columns[0]).codes) for sheet in sheets]
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return _Stack(first.source, first.columns, column, sheets=sheets, starts=starts)
