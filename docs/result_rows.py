"""Rows of `results/`, and tables of their means in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent.parent / "results"
Run = dict[str, Any]

# Never in bold: in practice the true matrices are unknown.
ORACLE = "oracle"


def read_runs(name: str) -> list[Run]:
    """Read a file of `results/`, one run per line."""
    with (RESULTS / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def mean(runs: Iterable[Run], name: str) -> float | None:
    """Return the mean of one measure over runs, None if no run has it."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return float(np.mean(values)) if values else None


def only(runs: Iterable[Run], **wanted: Any) -> list[Run]:
    """Return the runs with some values."""
    return [
        run for run in runs if all(run[name] == value for name, value in wanted.items())
    ]


def with_lowest(runs: Sequence[Run], name: str) -> str:
    """Return the mean, with the lowest value if higher is better."""
    average = mean(runs, name)
    if average is None:
        return ""
    if "accuracy" not in name:
        return cell(average, bold=False)
    lowest = min(run[name] for run in runs)
    return f"{cell(average, bold=False)} ({cell(lowest, bold=False)})"


def markdown(
    headers: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[float | None]]
) -> str:
    """Return a table in Markdown, the best of each column in bold."""
    shown = [
        [None if value is None else round(value, 3) for value in row] for row in rows
    ]
    compared = [row for name, row in zip(names, shown, strict=True) if name != ORACLE]
    best = [
        max((value for value in column if value is not None), default=None)
        for column in zip(*compared, strict=True)
    ]
    lines = [f"| {' | '.join(headers)} |", "|---" + "|---:" * (len(headers) - 1) + "|"]
    for name, row in zip(names, shown, strict=True):
        cells = [
            cell(value, value == top) for value, top in zip(row, best, strict=True)
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(value: float | None, bold: bool) -> str:
    """Return a fraction with three digits, without its zero."""
    if value is None:
        return ""
    said = f"{value:.3f}".removeprefix("0")
    return f"**{said}**" if bold else said
