"""Figure 8: a group of pairwise flippers at .3, and one of hammer-spammers at .5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from annotrace.experiments import figures, tables
from annotrace.experiments.digits import load
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment, Run, Split
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import (
    FLIPPERS,
    N_ANNOTATORS,
    SPAMMERS,
    describe,
    qualifying_seeds,
    rounded,
    true_confusion,
)
from annotrace.simulate import simulate_labels

SKILLS = {FLIPPERS: 0.3, SPAMMERS: 0.5}


def runs(options: Options) -> list[dict[str, Any]]:
    """List one group of each kind; nothing is trained, and no option changes anything."""
    fixed = {"method": "annotators", "density": N_ANNOTATORS, "protocol": "fast", "n_items": None}
    return [
        {**fixed, "crowd": crowd, "skill": skill, "seed": qualifying_seeds(crowd, skill, 1)[0]}
        for crowd, skill in SKILLS.items()
    ]


def perform(run: Run, data: Split, device: torch.device) -> Result:
    """Return the matrices of a group, and the accuracy of its labels."""
    confusion = true_confusion(run["crowd"], run["skill"], run["seed"])
    table = simulate_labels(data[0].y, confusion, random_state=run["seed"])
    result = describe(run, confusion, table)
    measures = {"accuracy": result["annotator_accuracy"], "cm_error": None}
    return {**result, **measures, "confusion": rounded(confusion)}


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw the matrices, one row per group, and a table of their diagonals."""
    matrices = [
        [(f"{r['crowd'][:-1]} {k}", np.array(matrix)) for k, matrix in enumerate(r["confusion"], 1)]
        for r in results
    ]
    written = figures.draw_matrices(matrices, folder / "figure-8")
    rows = [
        [r["crowd"], f"{r['skill']:g}", ", ".join(f"{skill:.3f}" for skill in r["true_skills"])]
        for r in results
    ]
    table = tables.markdown(["group", "mean skill", "mean diagonals"], rows, left=3)
    title = "Two groups of annotators (figure 8)"
    return [*written, tables.write_page(folder / "annotators.md", title, results, [table])]


EXPERIMENTS = (Experiment("annotators", "digits", None, load, runs, perform, draw),)
