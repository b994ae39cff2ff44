"""Figures 6 and 10: against methods that do not model each annotator, on the same labels.

All but Weighted Doctor Net learn from majority votes, as in the paper.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from annotrace.experiments import mnist, tables
from annotrace.experiments.plans import Experiment
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import FLIPPERS, SPAMMERS, perform

METHODS = ("trace", "single-cm", "wdn", "soft-bootstrap", "vanilla")


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy against skill, one figure per crowd, and their table."""
    paths = {FLIPPERS: folder / "figure-6", SPAMMERS: folder / "figure-10"}
    written = mnist.draw_by_crowd(results, METHODS, ("accuracy",), paths)
    title = "MNIST: against methods that do not model annotators (figures 6 and 10)"
    return [*written, tables.write_skill_page(folder / "mnist-robust.md", title, results, METHODS)]


EXPERIMENT = Experiment(
    "mnist-robust", "mnist", "mnist", mnist.load, partial(mnist.sweep_runs, METHODS), perform, draw
)
