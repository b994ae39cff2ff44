"""The table of other libraries, from the rows of `benchmarks/bench.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from annotrace.experiments import tables

Row = Mapping[str, Any]

OURS = "annotrace"
CROWDS = ("S", "M", "L", "W")
METHODS = {
    "dawid-skene": "Dawid-Skene",
    "ensemble": "default",
    "majority": "majority vote",
}


def peers_table(rows: Sequence[Row]) -> str:
    """Return the time and memory of each library by method and crowd.

    A time is in CPU seconds in the rows of annotrace, and a multiple of that in others.
    """
    compared = [row for row in rows if row["part"] in CROWDS]
    found = {(row["method"], row["library"], row["part"]): row for row in compared}
    crowds = [crowd for crowd in CROWDS if any(key[2] == crowd for key in found)]
    lines = []
    for method, name in METHODS.items():
        for library in dict.fromkeys(key[1] for key in found if key[0] == method):
            cells = [
                _cell(found.get((method, library, c)), found.get((method, OURS, c)))
                for c in crowds
            ]
            lines.append([name, library, *cells])
    return tables.markdown(["method", "library", *crowds], lines, left=2)


def _cell(row: Row | None, ours: Row | None) -> str:
    if row is None:
        return ""
    if "stopped" in row:
        return _why(row)
    memory = f"{row['megabytes']:,.0f} MB"
    if row["library"] == OURS or ours is None or "stopped" in ours:
        return f"{_digits(row['cpu_seconds'])} s, {memory}"
    return f"{_digits(row['cpu_seconds'] / ours['cpu_seconds'])} x, {memory}"


def _why(row: Row) -> str:
    """Return why a contender was stopped."""
    if row["stopped"] == "time":
        return f"more than {row['limits']['seconds']:g} s"
    if row["stopped"] == "memory":
        limit = row["limits"]["gigabytes"]
        wanted = re.search(r"allocate ([\d.]+) GiB", row["message"])
        # What is said is the last array, which need not be the largest.
        is_most = wanted is not None and float(wanted[1]) > limit
        return f"asks for {wanted[1]} GiB" if is_most else f"more than {limit:g} GB"
    return {"install": "not installed"}.get(row["stopped"], "failed")


def _digits(value: float) -> str:
    """Return a number with two significant digits, and no fewer before the point."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value >= 0.001 else "0.001"
