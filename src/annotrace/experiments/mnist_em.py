"""Figures 3 and 9: against generalized EM and MBEM on MNIST, as annotators get worse.

Five annotators label all images, or one of them, drawn at random, labels each. The oracle is given
the true matrices; "annotators" is how often their labels are right. Shaded is where the mean matrix
is not diagonally dominant, and nothing tells which name is whose.
"""

from __future__ import annotations

from pathlib import Path

from annotrace.experiments import mnist_sweep
from annotrace.experiments.crowds import FLIPPERS, SPAMMERS
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import Experiment, Result, Run

METHODS = ("trace", "mbem", "gem", "oracle")
FIGURES = {FLIPPERS: "figure-3", SPAMMERS: "figure-9"}


def plan(options: Options) -> list[Run]:
    """Plan both crowds, both densities, every skill and draw."""
    return mnist_sweep.plan_sweep("mnist-em", METHODS, options)


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy and error of the matrices against skill, and their table."""
    from annotrace.experiments import skill_curves, tables

    written = []
    for crowd, name in FIGURES.items():
        own = [result for result in results if result["crowd"] == crowd]
        if own:
            measures = ("accuracy", "cm_error")
            written += skill_curves.draw(own, METHODS, measures, folder / name, bound="oracle")
    text = tables.skill_tables("MNIST: against EM (figures 3 and 9)", results, METHODS)
    return [*written, tables.write(text, folder / "mnist-em.md")]


EXPERIMENT = Experiment("mnist-em", mnist_sweep.load, plan, perform, draw)
