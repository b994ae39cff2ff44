"""The tables of the zoo of crowds, from the rows of `benchmarks/zoo.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from annotrace.experiments import tables

Run = dict[str, Any]

SIMPLE = ("majority", "weighted-vote", "dawid-skene", "one-coin", "mace")
SHOWN = (*SIMPLE, "default")
REAL = "real"
FAMILIES = {
    "independent": "independent errors",
    "sparse": "one or two labels per item",
    "difficulty": "hard items, on which all guess",
    "camps": "a camp shares wrong answers",
    "shared_groups": "groups share answers",
    "copies": "many copy one source",
    "panel": "judges find the same items hard",
    "imbalance": "rare classes",
    "graded": "ordered classes",
    "class_groups": "groups of similar classes",
    "drift": "annotators learn or tire",
    "experts": "experts among spammers",
    "spammers": "spammers",
    "specialists": "specialists for some classes",
    "adversaries": "adversaries",
}
"""What goes wrong in each family of simulated crowds."""


def real_table(runs: Sequence[Run]) -> str:
    """Return the accuracy on each real crowd, the default beside simple methods."""
    real = [run for run in runs if run["family"] == REAL]
    rows = [[_crowd(run), *_by_method([run]), _difference(run)] for run in real]
    rows.append(["mean", *_by_method(real), ""])
    return tables.markdown(["crowd", *SHOWN, "default - best simple"], rows)


def families_table(runs: Sequence[Run]) -> str:
    """Return the means of each simulated family, with those of the oracle."""
    rows = []
    for family, said in FAMILIES.items():
        own = [run for run in runs if run["family"] == family]
        rows.append([said, *_family_cells(own, "accuracy")])
        if family == "imbalance":
            cells = _family_cells(own, "balanced_accuracy")
            rows.append([f"{said}, balanced accuracy", *cells])
    return tables.markdown(["crowds", *SHOWN, "oracle", "default - majority"], rows)


def _crowd(run: Run) -> str:
    return f"{run['crowd']} ({run['known']:,} items)"


def _difference(run: Run) -> str:
    return f"{_points(run['difference'])} ± {100 * run['difference_se']:.1f}"


def _by_method(runs: Sequence[Run], measure: str = "accuracy") -> list[str]:
    """Return the means of the methods, the best in bold."""
    means = [round(_mean(runs, measure, method), 3) for method in SHOWN]
    return [
        f"**{_digits(value)}**" if value == max(means) else _digits(value)
        for value in means
    ]


def _family_cells(runs: Sequence[Run], measure: str) -> list[str]:
    oracle, ours, votes = (
        _mean(runs, measure, method) for method in ("oracle", "default", "majority")
    )
    return [*_by_method(runs, measure), _digits(oracle), _points(ours - votes)]


def _mean(runs: Iterable[Run], measure: str, method: str) -> float:
    return float(np.mean([run[measure][method] for run in runs]))


def _points(difference: float) -> str:
    # Adding zero turns -0.0 into 0.0.
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def _digits(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
