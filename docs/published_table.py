"""The table of methods in the settings of their own papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotrace.experiments import tables

SETTINGS = ("published", "held-out", "fast")


def published_table(runs: Sequence[dict[str, Any]]) -> str:
    """Return accuracies by setting, from `benchmarks/published_settings.py`."""
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        own = [run for run in runs if run["method"] == method]
        cells = [_cell(own, setting) for setting in SETTINGS]
        name, _, rest = method.partition(" ")
        rows.append([f"`{name}` {rest}".strip(), *cells])
    return tables.markdown(["method", *SETTINGS], rows, left=1)


def _cell(runs: Sequence[dict[str, Any]], setting: str) -> str:
    """Return the mean and lowest accuracy, and the mean of the posterior."""
    of_cell = [run for run in runs if run["setting"] == setting]
    accuracies = [run["accuracy"] for run in of_cell]
    posterior = np.mean([run["posterior_accuracy"] for run in of_cell])
    numbers = (np.mean(accuracies), min(accuracies), posterior)
    shown = (f"{number:.3f}".removeprefix("0") for number in numbers)
    return "{} ({}), {}".format(*shown)
