"""Figure 8: a group of pairwise flippers at .3, and one of hammer-spammers at .5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from annotrace.data import load_digits
from annotrace.experiments.crowds import FLIPPERS, GROUP, SPAMMERS, confusion_of, qualifying_seeds
from annotrace.experiments.options import Options
from annotrace.experiments.performing import describe, rounded
from annotrace.experiments.runs import Experiment, Result, Run, Split
from annotrace.simulate import simulate_labels
from annotrace.version import versions

SKILLS = {FLIPPERS: 0.3, SPAMMERS: 0.5}


def load(data_dir: Path | None) -> Split:
    """Load digits for the groups to label; the figure needs no images."""
    return load_digits().split(1400)


def plan(options: Options) -> list[Run]:
    """Plan one group of each kind; nothing is trained, and the protocol changes nothing."""
    return [
        Run(
            "annotators",
            "digits",
            "annotators",
            crowd,
            skill,
            GROUP,
            qualifying_seeds(crowd, skill, 1)[0],
            Options().protocol,
            {},
        )
        for crowd, skill in SKILLS.items()
    ]


def show(run: Run, data: Split, device: torch.device) -> Result:
    """Give the matrices of a group, and how often its labels are right."""
    confusion = confusion_of(run)
    table = simulate_labels(data[0].y, confusion, random_state=run.seed)
    described = describe(run, confusion, table)
    return {
        **described,
        "accuracy": described["annotator_accuracy"],
        "cm_error": None,
        "confusion": rounded(confusion),
        "versions": versions(),
    }


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw the matrices, a row for each group, and a table of their diagonals."""
    from annotrace.experiments import drawing, tables

    rows = [
        [
            (f"{result['crowd'][:-1]} {place + 1}", np.array(matrix))
            for place, matrix in enumerate(result["confusion"])
        ]
        for result in results
    ]
    written = drawing.draw_matrices(rows, folder / "figure-8")
    lines = [
        [result["crowd"], f"{result['skill']:g}", ", ".join(f"{q:.3f}" for q in skills)]
        for result in results
        for skills in [result["true_skills"]]
    ]
    table = tables.markdown(["group", "mean skill", "mean diagonals"], lines, left=3)
    text = tables.page("Two groups of annotators (figure 8)", results, [table])
    return [*written, tables.write(text, folder / "annotators.md")]


EXPERIMENT = Experiment("annotators", load, plan, show, draw)
