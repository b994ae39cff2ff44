"""Figure 5: curves of validation accuracy for several settings, pairwise flippers at .35.

The trace method varies the weight of the trace; EM varies the number of steps T and the length G of
each, in a training of the same total length. A tenth of the images is watched and not trained on;
all epochs are run, and none is selected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotrace.experiments import figures, mnist, tables
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment
from annotrace.experiments.results import Result
from annotrace.experiments.settings import EM_STEPS, TRACE_WEIGHT
from annotrace.experiments.simulated import FLIPPERS, N_ANNOTATORS, perform, qualifying_seeds

SKILL = 0.35
VARIED = {
    "trace": (TRACE_WEIGHT, (0.1, 0.01, 0.001)),
    "gem": (EM_STEPS, (2, 10, 20, 93)),
    "mbem": (EM_STEPS, (2, 10, 20, 93)),
}


def runs(options: Options) -> list[dict[str, Any]]:
    """List one draw: three weights of the trace, four numbers of steps for either EM."""
    (seed,) = qualifying_seeds(FLIPPERS, SKILL, 1)
    group = {"crowd": FLIPPERS, "skill": SKILL, "density": N_ANNOTATORS, "seed": seed}
    return [
        {"method": method, **group, "settings": {name: value}}
        for method, (name, values) in VARIED.items()
        for value in values
    ]


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw one panel of curves per method, and a table of their last points."""
    panels = {
        tables.method_name(method): {
            _label(r): r["curve"] for r in results if r["method"] == method
        }
        for method in VARIED
    }
    written = figures.draw_training_curves(panels, folder / "figure-5")
    rows = [
        [
            tables.method_name(r["method"]),
            _label(r),
            f"{r['curve'][-1][0]:,}",
            *(f"{100 * x:.2f}" for x in (r["curve"][-1][1], r["accuracy"], r["cm_error"])),
        ]
        for r in results
    ]
    headers = ["method", "setting", "steps", "validation", "test accuracy", "CM error x 100"]
    parts = [tables.markdown(headers, rows, left=2)]
    page = folder / "mnist-sensitivity.md"
    return [*written, tables.write_page(page, "MNIST: settings (figure 5)", results, parts)]


def _label(result: Result) -> str:
    settings = result["settings"]
    if result["method"] == "trace":
        return f"lambda = {settings[TRACE_WEIGHT]:g}"
    steps = settings[EM_STEPS]
    return f"T = {steps}, G = {result['curve'][-1][0] // steps:,}"


EXPERIMENT = Experiment(
    name="mnist-sensitivity",
    data="mnist",
    recipe="mnist-sensitivity",
    load=mnist.load,
    runs=runs,
    perform=perform,
    draw=draw,
    keep=("curve",),
)
