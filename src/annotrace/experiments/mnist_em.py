"""Figures 3 and 9: against generalized EM and MBEM on MNIST, as annotators get worse.

Five annotators label all images, or one of them, drawn at random, labels each. The oracle gets the
true matrices; "annotators" is the accuracy of the labels. Shaded: the mean matrix is not diagonally
dominant, and the classes are not identified.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from annotrace.experiments import figures, mnist, tables
from annotrace.experiments.plans import Experiment
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import FLIPPERS, SPAMMERS, perform

METHODS = ("trace", "mbem", "gem", "oracle")
FIGURES = {FLIPPERS: "figure-3", SPAMMERS: "figure-9"}


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy and CM error against skill, one figure per crowd, and their table."""
    written = []
    for crowd, name in FIGURES.items():
        if own := [r for r in results if r["crowd"] == crowd]:
            measures = ("accuracy", "cm_error")
            written += figures.draw_skill_curves(own, METHODS, measures, folder / name)
    title = "MNIST: against EM (figures 3 and 9)"
    return [*written, tables.write_skill_page(folder / "mnist-em.md", title, results, METHODS)]


EXPERIMENT = Experiment(
    "mnist-em", "mnist", "mnist", mnist.load, partial(mnist.sweep_runs, METHODS), perform, draw
)
