"""Figures 6 and 10: against methods that do not model each annotator, on the same labels.

All but Weighted Doctor Net learn from majority votes, as in the paper.
"""

from __future__ import annotations

from pathlib import Path

from annotrace.experiments import mnist_sweep
from annotrace.experiments.crowds import FLIPPERS, SPAMMERS
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import Experiment, Result, Run

METHODS = ("trace", "single-cm", "wdn", "soft-bootstrap", "vanilla")
FIGURES = {FLIPPERS: "figure-6", SPAMMERS: "figure-10"}


def plan(options: Options) -> list[Run]:
    """Plan both crowds, both densities, every skill and draw."""
    return mnist_sweep.plan_sweep("mnist-robust", METHODS, options)


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy against skill, and the table."""
    from annotrace.experiments import skill_curves, tables

    written = []
    for crowd, name in FIGURES.items():
        own = [result for result in results if result["crowd"] == crowd]
        if own:
            written += skill_curves.draw(own, METHODS, ("accuracy",), folder / name)
    title = "MNIST: against methods that do not model annotators (figures 6 and 10)"
    text = tables.skill_tables(title, results, METHODS)
    return [*written, tables.write(text, folder / "mnist-robust.md")]


EXPERIMENT = Experiment("mnist-robust", mnist_sweep.load, plan, perform, draw)
