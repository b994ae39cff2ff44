"""Every method on scikit-learn's digits: five pairwise flippers, dense or one label per item.

1,400 training items and 397 test items; the first groups whose mean matrix is diagonally dominant.
Takes minutes on a laptop, and needs no download.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotrace.data import load_digits
from annotrace.experiments import figures, tables
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment, Split
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import FLIPPERS, N_ANNOTATORS, perform, qualifying_seeds
from annotrace.methods import list_methods

# Errors of its annotators do not depend on the item: `item-dependent` would be `crossfit`.
METHODS = tuple(method.name for method in list_methods() if method.name != "item-dependent")
SKILL = 0.4
SEEDS = 3


def load(data_dir: Path | None) -> Split:
    """Load the digits that come with scikit-learn."""
    return load_digits().split(1400)


def runs(options: Options) -> list[dict[str, Any]]:
    """List every method with dense labels and with one label per item, on three draws."""
    return [
        {"method": method, "crowd": FLIPPERS, "skill": SKILL, "density": density, "seed": seed}
        for density in (N_ANNOTATORS, 1)
        for seed in qualifying_seeds(FLIPPERS, SKILL, options.seeds or SEEDS)
        for method in METHODS
    ]


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw the accuracy of every run, and write one table per density."""
    written = figures.draw_methods(results, METHODS, folder / "digits")
    densities = sorted({r["density"] for r in results}, reverse=True)
    parts = [tables.by_method(results, METHODS, density) for density in densities]
    return [*written, tables.write_page(folder / "digits.md", "Digits", results, parts)]


# On matrices as small as these one thread is faster than several.
EXPERIMENTS = (Experiment("digits", "digits", "digits", load, runs, perform, draw, threads=1),)
