"""Tables about shared errors: coverage of intervals of the accuracy, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotrace.experiments import tables

Run = dict[str, Any]

PANELS = ("babe_8shot", "babe_zeroshot")


def accuracy_table(runs: Sequence[Run]) -> str:
    """Return how often intervals cover, from `benchmarks/accuracy_intervals.py`."""
    human = [run for run in runs if "seed" not in run and run["crowd"] not in PANELS]
    kinds = {run["crowd"]: [run] for run in human}
    kinds["the eight together"] = human
    kinds |= {run["crowd"]: [run] for run in runs if run["crowd"] in PANELS}
    kinds["simulated, independent errors"] = [run for run in runs if run.get("easy")]
    kinds["simulated panels"] = [run for run in runs if run["crowd"] == "panel"]
    rows = [[kind, *_coverage(own)] for kind, own in kinds.items()]
    headers = ["crowd", "annotators", "covered", "median width"]
    return tables.markdown([*headers, "if independent", "median width"], rows)


def _coverage(runs: Sequence[Run]) -> list[str]:
    n = sum(run["annotators"] for run in runs)
    cells = [str(n)]
    for kind in ("", "_independent"):
        covered = sum(run[f"covered{kind}"] for run in runs) / n
        width = np.median(np.concatenate([run[f"widths{kind}"] for run in runs]))
        cells += [f"{value:.3f}".removeprefix("0") for value in (covered, width)]
    return cells


def verdicts_table(runs: Sequence[Run]) -> str:
    """Count verdicts by family, from `benchmarks/verdicts.py`."""
    families = {run["family"]: [] for run in runs}
    for run in runs:
        families[run["family"]].append(run)
    rows = [[family, *_verdicts(own)] for family, own in families.items()]
    headers = ["family", "crowds", "easy", "identified", "of these right"]
    return tables.markdown(
        [*headers, "easy and identified"], [*rows, ["all", *_verdicts(runs)]]
    )


def _verdicts(runs: Sequence[Run]) -> list[str]:
    easy = [run for run in runs if run["easy"]]
    said = [run for run in runs if run["verdict"] == "identified"]
    right = [
        run
        for run in said
        if run["shortfall"] <= 0.03 and run["calibration_error"] <= 0.07
    ]
    both = [run for run in said if run["easy"]]
    return [str(len(each)) for each in (runs, easy, said, right, both)]
