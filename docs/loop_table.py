"""The table of labels that a project in Label Studio needs, by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

COLUMNS = {
    "queue, Label Studio": ("queue", "Label Studio"),
    "random order, Label Studio": ("random", "Label Studio"),
    "queue, server of the tests": ("queue", "fake"),
    "queue of at most 10 each": ("queue-10", "fake"),
    "random order": ("random", "fake"),
}


def loop_table(runs: Sequence[dict[str, Any]]) -> str:
    """Return the labels until 95 % of the texts are right, by seed and arm."""
    found = {(run["arm"], run["server"], run["seed"]): run["n_labels"] for run in runs}
    lines = [f"| seed | {' | '.join(COLUMNS)} |", "|---" + "|---:" * len(COLUMNS) + "|"]
    for seed in sorted({run["seed"] for run in runs}):
        numbers = [found.get((*column, seed)) for column in COLUMNS.values()]
        lines.append(f"| {seed} | {' | '.join(map(_cell, numbers))} |")
    totals = [
        [found[key] for key in found if key[:2] == column]
        for column in COLUMNS.values()
    ]
    means = [_cell(round(sum(each) / len(each))) if each else "" for each in totals]
    return "\n".join([*lines, f"| mean | {' | '.join(means)} |"])


def _cell(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
