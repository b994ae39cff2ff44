"""Every experiment by its name; each is imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from annotrace.errors import InputError

if TYPE_CHECKING:
    from annotrace.experiments.runs import Experiment

EXPERIMENTS = {
    "mnist-em": "figures 3 and 9: against EM, as annotators get worse",
    "mnist-robust": "figures 6 and 10: against methods that do not model annotators",
    "mnist-ablation": "figure 11: with and without the trace",
    "mnist-dominance": "figure 4: mean matrices where the diagonal leads, and where not",
    "mnist-sensitivity": "figure 5: curves for several lambdas, and EM steps",
    "annotators": "figure 8: examples of both groups of annotators",
    "cifar10-table": "table 1 and figure 2: all methods on CIFAR-10",
    "cardiac": "figure 7: ultrasound views, simulated, since the real ones are private",
    "digits": "every method on a small embedded set, for a laptop",
}


def find_experiment(name: str) -> Experiment:
    """Give an experiment by its name."""
    if name not in EXPERIMENTS:
        raise InputError(f"There is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}.")
    module = importlib.import_module(f"annotrace.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found
