"""Figures 3 and 9: against generalized EM and MBEM on MNIST, as annotators get worse.

Five annotators label all images, or one of them, drawn at random, labels each. The oracle gets the
true matrices; "annotators" is the accuracy of the labels. Shaded: the mean matrix is not diagonally
dominant, and the classes are not identified.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from annotrace.experiments import mnist, tables
from annotrace.experiments.plans import Experiment
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import FLIPPERS, SPAMMERS, perform

METHODS = ("trace", "mbem", "gem", "oracle")


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy and CM error against skill, one figure per crowd, and their table."""
    paths = {FLIPPERS: folder / "figure-3", SPAMMERS: folder / "figure-9"}
    written = mnist.draw_by_crowd(results, METHODS, ("accuracy", "cm_error"), paths)
    title = "MNIST: against EM (figures 3 and 9)"
    return [*written, tables.write_skill_page(folder / "mnist-em.md", title, results, METHODS)]


EXPERIMENT = Experiment(
    "mnist-em", "mnist", "mnist", mnist.load, partial(mnist.sweep_runs, METHODS), perform, draw
)
