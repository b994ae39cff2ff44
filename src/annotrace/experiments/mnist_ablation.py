"""Figure 11: the method with and without the trace, on the labels of figures 3 and 9."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from annotrace.experiments import figures, mnist, tables
from annotrace.experiments.plans import Experiment
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import perform

METHODS = ("trace", "no-trace")


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy and CM error against skill for both crowds in one figure, and their table."""
    measures = ("accuracy", "cm_error")
    written = figures.draw_skill_curves(results, METHODS, measures, folder / "figure-11")
    title, page = "MNIST: with and without the trace (figure 11)", folder / "mnist-ablation.md"
    return [*written, tables.write_skill_page(page, title, results, METHODS)]


runs = partial(mnist.sweep_runs, METHODS)
EXPERIMENT = Experiment("mnist-ablation", "mnist", "mnist", mnist.load, runs, perform, draw)
