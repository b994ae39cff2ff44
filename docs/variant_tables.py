"""Tables of `benchmarks/variants.py`, by the means and ranks of its own summary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from variants_rows import Cell
from variants_summary import (
    Runs,
    describe_missing,
    digits,
    overall_title,
    standings,
)

from annotrace.experiments import tables

TITLES = {
    "labelme": "LabelMe",
    "digits": "digits, features",
    "reviews": "reviews",
    "sentiment": "sentiment",
    "digits-images": "digits, images",
    "cifar10n": "CIFAR-10N",
}


def by_variant_table(rows: Iterable[dict[str, Any]]) -> str:
    """Return mean rank and accuracy by variant, and the accuracy of the posterior."""
    runs = Runs(rows)
    columns = _columns(runs, lambda cell: cell.variant)
    lines = [
        [
            f"`{each.method}`",
            "" if each.rank is None else f"{each.rank:.1f}",
            *(digits(runs.mean(each.method, cells)) for cells in columns.values()),
            digits(runs.mean(each.method, runs.cells)),
            digits(runs.mean(each.method, runs.cells, "posterior_accuracy")),
        ]
        for each in standings(runs)
    ]
    table = tables.markdown(["method", "rank", *columns, "mean", "posterior"], lines)
    return "\n\n".join([f"{overall_title(runs)}.", table, *_lacking(runs)])


def by_set_table(rows: Iterable[dict[str, Any]]) -> str:
    """Return accuracy and seconds of a fit by set, over variants."""
    runs = Runs(rows)
    columns = _columns(runs, lambda cell: TITLES[cell.set])
    lines = [
        [
            f"`{each.method}`",
            *(_set_cell(runs, each.method, cells) for cells in columns.values()),
        ]
        for each in standings(runs)
    ]
    return tables.markdown(["method", *columns], lines)


def _columns(runs: Runs, key: Callable[[Cell], str]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in runs.cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def _set_cell(runs: Runs, method: str, cells: list[Cell]) -> str:
    accuracy, seconds = (
        runs.mean(method, cells, measure) for measure in ("accuracy", "seconds")
    )
    return "" if seconds is None else f"{digits(accuracy)} ({seconds:.1f} s)"


def _lacking(runs: Runs) -> list[str]:
    """Return a sentence on the runs that failed or were not done, if there are any."""
    failed = [
        f"{row['method']} on {row['set']} {row['variant']}, seed {row['seed']}"
        for row in runs.failed()
    ]
    parts = {"Failed": failed, "Not run": describe_missing(runs)}
    return [f"{word}: {'; '.join(own)}." for word, own in parts.items() if own]
