"""Figure 5: curves of validation accuracy for several settings, pairwise flippers at .35.

For the trace its scale is varied; for EM the number of steps T and the length G of each, the
training as a whole being as long. A tenth of the images is watched and not learned from; all epochs
are run, and none is chosen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotrace.experiments import mnist_sweep
from annotrace.experiments.crowds import FLIPPERS, GROUP, qualifying_seeds
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import (
    TRAINED_ONCE,
    Experiment,
    Recipe,
    Result,
    Run,
    chosen_methods,
    epochs_of,
    find_method,
)

METHODS = ("trace", "gem", "mbem")
SKILL = 0.35
LAMBDAS = (0.1, 0.01, 0.001)

# 54,000 images: 93 epochs are 100,440 steps of 50, as in the paper, and 20,088 of 250.
RECIPES = {
    "paper": Recipe(
        {"protocol": "paper", "backbone": "cnn", "epochs": 93, "validation": 0.0},
        by_method={"gem": {"smoothing": 0.0}, "mbem": {"smoothing": 0.0}},
    ),
    "fast": Recipe(
        {
            "backbone": "cnn",
            "epochs": 93,
            "batch_size": 250,
            "validation": 0.0,
            "confusion_lr": 5.0,
        },
        by_method={"trace": {**TRAINED_ONCE, "mend": False}},
    ),
}
EM_STEPS = (93, 20, 10, 2)


def plan(options: Options) -> list[Run]:
    """Plan one draw: three scales of the trace, four numbers of steps for either EM."""
    (seed,) = qualifying_seeds(FLIPPERS, SKILL, 1)
    return [
        Run(
            "mnist-sensitivity",
            "mnist",
            method,
            FLIPPERS,
            SKILL,
            GROUP,
            seed,
            options.protocol,
            settings,
            options.limit_items,
            keep=("curve",),
        )
        for method in chosen_methods(METHODS, options)
        for settings in _varied(method, options)
    ]


def _varied(method: str, options: Options) -> list[dict[str, Any]]:
    settings = RECIPES[options.protocol].settings(method, GROUP, options)
    if method == "trace":
        return [{**settings, "lam": lam} for lam in LAMBDAS]
    most = epochs_of(find_method(method)[0](**settings))
    return [{**settings, "steps": steps} for steps in sorted({min(T, most) for T in EM_STEPS})]


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw a panel of curves for each method, and a table of where they end."""
    from annotrace.experiments import drawing, tables
    from annotrace.experiments.naming import look

    panels = {
        look(method).name: {
            _label(result): result["curve"] for result in results if result["method"] == method
        }
        for method in METHODS
    }
    written = drawing.draw_panels_of_curves(panels, folder / "figure-5")
    rows = [
        [
            look(result["method"]).name,
            _label(result),
            f"{result['curve'][-1][0]:,}",
            f"{100 * result['curve'][-1][1]:.2f}",
            f"{100 * result['accuracy']:.2f}",
            f"{100 * result['cm_error']:.2f}",
        ]
        for result in results
    ]
    headers = ["method", "setting", "steps", "validation", "test accuracy", "CM error x 100"]
    text = tables.page(
        "MNIST: settings (figure 5)", results, [tables.markdown(headers, rows, left=2)]
    )
    return [*written, tables.write(text, folder / "mnist-sensitivity.md")]


def _label(result: Result) -> str:
    settings = result["settings"]
    if result["method"] == "trace":
        return f"lambda = {settings['lam']:g}"
    steps = settings["steps"]
    return f"T = {steps}, G = {result['curve'][-1][0] // steps:,}"


EXPERIMENT = Experiment("mnist-sensitivity", mnist_sweep.load, plan, perform, draw)
