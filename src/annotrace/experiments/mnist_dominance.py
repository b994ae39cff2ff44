"""Figure 4: mean matrices as each method estimates them, one label an image.

At a mean skill of .30 groups of five pairwise flippers can have a diagonally dominant mean matrix,
at .25 they (all but) never do.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotrace.experiments import mnist_sweep
from annotrace.experiments.crowds import CLASSES, FLIPPERS, GROUP
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import Experiment, Result, Run
from annotrace.simulate import pairwise_flippers

METHODS = ("trace", "mbem", "gem")
SKILLS = (0.3, 0.25)


def plan(options: Options) -> list[Run]:
    """Plan one draw of pairwise flippers at each of the two skills."""
    return mnist_sweep.plan_sweep(
        "mnist-dominance",
        METHODS,
        options,
        crowds=(FLIPPERS,),
        skills=SKILLS,
        densities=(1,),
        draws=1,
    )


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw the true mean matrix and each estimate, a row for each skill; and the table."""
    from annotrace.experiments import drawing, tables
    from annotrace.experiments.naming import look

    skills = sorted({result["skill"] for result in results}, reverse=True)
    rows = []
    for skill in skills:
        at_skill = [result for result in results if result["skill"] == skill]
        seed = at_skill[0]["seed"]
        truth = pairwise_flippers(GROUP, CLASSES, skill, seed).mean(axis=0)
        holds = "dominant" if at_skill[0]["dominant"] else "not dominant"
        row = [(f"truth, p = {skill:g} ({holds})", truth)]
        row += [
            (look(result["method"]).name, np.array(result["mean_confusion"]))
            for result in at_skill
            if result["seed"] == seed
        ]
        rows.append(row)
    written = drawing.draw_matrices(rows, folder / "figure-4", percent=True)
    text = tables.skill_tables("MNIST: dominance, one label an image (figure 4)", results, METHODS)
    return [*written, tables.write(text, folder / "mnist-dominance.md")]


EXPERIMENT = Experiment("mnist-dominance", mnist_sweep.load, plan, perform, draw)
