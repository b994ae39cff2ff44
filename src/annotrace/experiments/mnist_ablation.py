"""Figure 11: the method with and without the trace, on the labels of figures 3 and 9."""

from __future__ import annotations

from pathlib import Path

from annotrace.experiments import mnist_sweep
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import Experiment, Result, Run

METHODS = ("trace", "no-trace")


def plan(options: Options) -> list[Run]:
    """Plan both crowds, both densities, every skill and draw."""
    return mnist_sweep.plan_sweep("mnist-ablation", METHODS, options)


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw accuracy and error of the matrices against skill for both crowds, and the table."""
    from annotrace.experiments import skill_curves, tables

    written = skill_curves.draw_by_crowd(results, METHODS, folder / "figure-11")
    text = tables.skill_tables("MNIST: with and without the trace (figure 11)", results, METHODS)
    return [*written, tables.write(text, folder / "mnist-ablation.md")]


EXPERIMENT = Experiment("mnist-ablation", mnist_sweep.load, plan, perform, draw)
