"""MNIST: figures 3 to 6 and 9 to 11.

Five annotators label all images, or one of them, drawn at random, labels each. The oracle gets the
true matrices; "annotators" is the accuracy of the labels. Single CM, soft bootstrap and vanilla
learn from majority votes, as in the paper. Shaded: the mean matrix is not diagonally dominant, and
the classes are not identified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotrace.data import load_mnist
from annotrace.errors import InputError
from annotrace.experiments import figures, tables
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment, Split
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import (
    FLIPPERS,
    N_ANNOTATORS,
    SPAMMERS,
    perform,
    qualifying_seeds,
    true_confusion,
)

SKILLS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 0.9)
# Spammers of one skill have nearly equal matrices: more draws would repeat the first.
N_DRAWS = {FLIPPERS: 3, SPAMMERS: 1}
SEVERAL_DRAWS = ("trace", "no-trace")
"""Methods that get all draws; the others get the first, unless --seeds asks for more."""


def load(data_dir: Path | None) -> Split:
    """Load MNIST."""
    if data_dir is None:
        raise InputError("This experiment needs MNIST: give --data-dir the folder of its files.")
    return load_mnist(data_dir)


def sweep_runs(
    methods: Sequence[str],
    options: Options,
    crowds: Sequence[str] = (FLIPPERS, SPAMMERS),
    skills: Sequence[float] = SKILLS,
    densities: Sequence[int] = (N_ANNOTATORS, 1),
    n_draws: int | None = None,
) -> list[dict[str, Any]]:
    """List every method on every crowd, density and skill, and some on several draws."""
    n_draws = options.seeds or n_draws
    return [
        {"method": method, "crowd": crowd, "skill": skill, "density": density, "seed": seed}
        for crowd in crowds
        for density in densities
        for skill in options.skills or skills
        for place, seed in enumerate(qualifying_seeds(crowd, skill, n_draws or N_DRAWS[crowd]))
        for method in methods
        if n_draws or place == 0 or method in SEVERAL_DRAWS
    ]


def against_skill(
    name: str,
    title: str,
    methods: Sequence[str],
    measures: Sequence[str],
    pictures: Mapping[str, Sequence[str]],
) -> Experiment:
    """Return an experiment that draws measures against skill; `pictures` maps a file to crowds."""

    def draw(results: list[Result], folder: Path) -> list[Path]:
        written = []
        for picture, crowds in pictures.items():
            if own := [r for r in results if r["crowd"] in crowds]:
                written += figures.draw_skill_curves(own, methods, measures, folder / picture)
        return [*written, tables.write_skill_page(folder / f"{name}.md", title, results, methods)]

    return Experiment(name, "mnist", "mnist", load, partial(sweep_runs, methods), perform, draw)


# Figure 4: at a mean skill of .30 a group of five pairwise flippers can have a diagonally dominant
# mean matrix; at .25 it almost never does.
COMPARED = ("trace", "mbem", "gem")


def dominance_runs(options: Options) -> list[dict[str, Any]]:
    """List one draw of pairwise flippers at each of the two skills; figure 3 shares these runs."""
    return sweep_runs(COMPARED, options, (FLIPPERS,), (0.3, 0.25), densities=(1,), n_draws=1)


def draw_dominance(results: list[Result], folder: Path) -> list[Path]:
    """Draw the true mean matrix and each estimate, one row per skill, and the table."""
    rows = []
    for skill in sorted({r["skill"] for r in results}, reverse=True):
        at_skill = [r for r in results if r["skill"] == skill]
        seed, holds = at_skill[0]["seed"], "" if at_skill[0]["dominant"] else "not "
        truth = true_confusion(FLIPPERS, skill, seed).mean(axis=0)
        estimates = [
            (tables.method_name(r["method"]), np.array(r["mean_confusion"]))
            for r in at_skill
            if r["seed"] == seed
        ]
        rows.append([(f"truth, p = {skill:g} ({holds}dominant)", truth), *estimates])
    written = figures.draw_matrices(rows, folder / "figure-4", percent=True)
    title = "MNIST: dominance, one label per image (figure 4)"
    page = folder / "mnist-dominance.md"
    return [*written, tables.write_skill_page(page, title, results, COMPARED)]


# Figure 5: the trace method varies the weight of the trace; EM varies the number of steps T and the
# length G of each, in a training of the same total length. Curves are measured on a held-out tenth
# of the images; all epochs are run, and none is selected.
VARIED = {
    "trace": ("lam", (0.1, 0.01, 0.001)),
    "gem": ("n_steps", (2, 10, 20, 93)),
    "mbem": ("n_steps", (2, 10, 20, 93)),
}


def sensitivity_runs(options: Options) -> list[dict[str, Any]]:
    """List one draw: three weights of the trace, four numbers of steps for either EM."""
    (seed,) = qualifying_seeds(FLIPPERS, 0.35, 1)
    group = {"crowd": FLIPPERS, "skill": 0.35, "density": N_ANNOTATORS, "seed": seed}
    return [
        {"method": method, **group, "settings": {name: value}}
        for method, (name, values) in VARIED.items()
        for value in values
    ]


def draw_sensitivity(results: list[Result], folder: Path) -> list[Path]:
    """Draw one panel of curves per method, and a table of their last points."""
    panels = {
        tables.method_name(method): {
            _varied(r): r["curve"] for r in results if r["method"] == method
        }
        for method in VARIED
    }
    written = figures.draw_training_curves(panels, folder / "figure-5")
    rows = [
        [
            tables.method_name(r["method"]),
            _varied(r),
            f"{r['curve'][-1][0]:,}",
            *(f"{100 * x:.2f}" for x in (r["curve"][-1][1], r["accuracy"], r["cm_error"])),
        ]
        for r in results
    ]
    headers = ["method", "setting", "steps", "validation", "test accuracy", "CM error x 100"]
    parts = [tables.markdown(headers, rows, left=2)]
    page = folder / "mnist-sensitivity.md"
    return [*written, tables.write_page(page, "MNIST: settings (figure 5)", results, parts)]


def _varied(result: Result) -> str:
    value = result["settings"][VARIED[result["method"]][0]]
    if result["method"] == "trace":
        return f"lambda = {value:g}"
    return f"T = {value}, G = {result['curve'][-1][0] // value:,}"


EXPERIMENTS = (
    against_skill(
        "mnist-em",
        "MNIST: against EM (figures 3 and 9)",
        ("trace", "mbem", "gem", "oracle"),
        ("accuracy", "cm_error"),
        {"figure-3": (FLIPPERS,), "figure-9": (SPAMMERS,)},
    ),
    against_skill(
        "mnist-robust",
        "MNIST: against methods that do not model annotators (figures 6 and 10)",
        ("trace", "single-cm", "wdn", "soft-bootstrap", "vanilla"),
        ("accuracy",),
        {"figure-6": (FLIPPERS,), "figure-10": (SPAMMERS,)},
    ),
    against_skill(
        "mnist-ablation",
        "MNIST: with and without the trace (figure 11)",
        ("trace", "no-trace"),
        ("accuracy", "cm_error"),
        {"figure-11": (FLIPPERS, SPAMMERS)},
    ),
    Experiment("mnist-dominance", "mnist", "mnist", load, dominance_runs, perform, draw_dominance),
    Experiment(
        "mnist-sensitivity",
        "mnist",
        "mnist-sensitivity",
        load,
        sensitivity_runs,
        perform,
        draw_sensitivity,
        keep=("curve",),
    ),
)
