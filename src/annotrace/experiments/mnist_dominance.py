"""Figure 4: mean matrices as each method estimates them, one label per image.

At a mean skill of .30 a group of five pairwise flippers can have a diagonally dominant mean matrix;
at .25 it almost never does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from annotrace.experiments import figures, mnist, tables
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import FLIPPERS, perform, true_confusion

METHODS = ("trace", "mbem", "gem")
SKILLS = (0.3, 0.25)


def runs(options: Options) -> list[dict[str, Any]]:
    """List one draw of pairwise flippers at each of the two skills; figure 3 shares these runs."""
    return mnist.sweep_runs(METHODS, options, (FLIPPERS,), SKILLS, densities=(1,), n_draws=1)


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw the true mean matrix and each estimate, one row per skill, and the table."""
    rows = []
    for skill in sorted({r["skill"] for r in results}, reverse=True):
        at_skill = [r for r in results if r["skill"] == skill]
        seed, holds = at_skill[0]["seed"], "" if at_skill[0]["dominant"] else "not "
        truth = true_confusion(FLIPPERS, skill, seed).mean(axis=0)
        estimates = [
            (tables.method_name(r["method"]), np.array(r["mean_confusion"]))
            for r in at_skill
            if r["seed"] == seed
        ]
        rows.append([(f"truth, p = {skill:g} ({holds}dominant)", truth), *estimates])
    written = figures.draw_matrices(rows, folder / "figure-4", percent=True)
    title = "MNIST: dominance, one label per image (figure 4)"
    page = folder / "mnist-dominance.md"
    return [*written, tables.write_skill_page(page, title, results, METHODS)]


EXPERIMENT = Experiment("mnist-dominance", "mnist", "mnist", mnist.load, runs, perform, draw)
