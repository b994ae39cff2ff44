"""Reproduction of the paper: figures and tables by the data that they are about.

`python -m annotrace.experiments NAME` or `annotrace reproduce NAME` runs one. An experiment lists
its runs, `runner` performs those that results.jsonl lacks, and tables and figures are drawn from
that file alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from annotrace.errors import InputError

if TYPE_CHECKING:
    from annotrace.experiments.plans import Experiment

EXPERIMENTS = {
    "mnist-em": "figures 3 and 9: against EM, as annotators get worse",
    "mnist-robust": "figures 6 and 10: against methods that do not model annotators",
    "mnist-ablation": "figure 11: with and without the trace",
    "mnist-dominance": "figure 4: mean matrices with and without a dominant diagonal",
    "mnist-sensitivity": "figure 5: curves for several lambdas, and EM steps",
    "annotators": "figure 8: examples of both groups of annotators",
    "cifar10-table": "table 1 and figure 2: all methods on CIFAR-10",
    "cardiac": "figure 7: ultrasound views, simulated because the real ones are private",
    "digits": "every method on a small built-in data set, for a laptop",
}
"""What each experiment shows; the first word of its name is its module."""

LISTED = "\n".join(f"  {name:18} {shows}" for name, shows in EXPERIMENTS.items())
"""The experiments as a command line lists them."""


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name; its module is imported now."""
    if name not in EXPERIMENTS:
        raise InputError(f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
    module = importlib.import_module(f"annotrace.experiments.{name.partition('-')[0]}")
    found: Experiment = next(each for each in module.EXPERIMENTS if each.name == name)
    return found
