"""The table of runs with the paper's own settings on MNIST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annotrace.experiments import tables


def paper_runs_table(runs: Sequence[dict[str, Any]]) -> str:
    """Return accuracy and error of the matrices by skill and method."""
    ordered = sorted(
        runs, key=lambda run: (run["density"], run["skill"], run["method"])
    )
    rows = [
        [
            f"{run['skill']:g}",
            str(run["density"]),
            tables.method_name(run["method"]),
            f"{100 * run['accuracy']:.2f}",
            f"{100 * run['posterior_accuracy']:.2f}",
            f"{100 * run['cm_error']:.2f}",
        ]
        for run in ordered
    ]
    header = ["skill", "labels per item", "method", "accuracy", "posterior", "CM error"]
    return tables.markdown(header, rows, left=1)
