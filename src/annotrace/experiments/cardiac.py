"""Figure 7: views of the heart, named by six experts and two non-experts. Simulated.

The paper's set (240,000 ultrasound images) is private; `cardiac_views` draws one that is like it in
what matters here: six classes, two of them near-twins, speckle, and few labels an image.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotrace.experiments.cardiac_views import (
    EXPERTS,
    NON_EXPERTS,
    VIEWS,
    cardiac_annotators,
    cardiac_views,
)
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import (
    PUBLISHED,
    TRAINED_ONCE,
    Experiment,
    Recipe,
    Result,
    Run,
    Split,
    chosen_methods,
)

METHODS = ("trace", "no-trace", "mbem", "wdn", "single-cm", "soft-bootstrap", "vanilla")
NAMES = (
    *(f"expert {k + 1}" for k in range(EXPERTS)),
    *(f"non-expert {k + 1}" for k in range(NON_EXPERTS)),
)
LABELS_PER_IMAGE = 2
SEEDS = 3
N_TRAIN, N_TEST = 12_000, 3_000

RECIPES = {
    "paper": Recipe(
        {"protocol": "paper", "backbone": "cnn-wide", "select": "truth"},
        by_method=PUBLISHED,
    ),
    "fast": Recipe(
        {
            "backbone": "cnn-wide",
            "batch_size": 100,
            "epochs": 20,
            "lr": 1e-3,
            "schedule": "warm-cosine",
            "precision": "bf16",
            "confusion_lr": 5.0,
        },
        by_method={"trace": TRAINED_ONCE, "mbem": {"steps": 2}},
    ),
}


def load(data_dir: Path | None, n_train: int = N_TRAIN, n_test: int = N_TEST) -> Split:
    """Draw the views; no files are needed."""
    return cardiac_views(n_train, random_state=0), cardiac_views(n_test, random_state=1)


def plan(options: Options) -> list[Run]:
    """Plan the methods of the paper's table."""
    recipe = RECIPES[options.protocol]
    return [
        Run(
            "cardiac",
            "cardiac (simulated)",
            method,
            "cardiac",
            None,
            LABELS_PER_IMAGE,
            seed,
            options.protocol,
            recipe.settings(method, LABELS_PER_IMAGE, options),
            options.limit_items,
            keep=("confusion",),
        )
        for seed in range(options.seeds or SEEDS)
        for method in chosen_methods(METHODS, options)
    ]


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw views, skills and matrices, and write the table beside the paper's."""
    from annotrace.experiments import drawing, published, tables

    some = cardiac_views(60, random_state=2)
    views = [(name, some.X[np.argmax(some.y == k)]) for k, name in enumerate(VIEWS)]
    written = drawing.draw_images([views], folder / "figure-7a")
    ours = [result for result in results if result["method"] == "trace"]
    notes = []
    if ours:
        truth, estimated = np.array(ours[0]["true_skills"]), np.array(ours[0]["skills"])
        written += drawing.draw_skills(NAMES, truth, estimated, folder / "figure-7b")
        written += drawing.draw_matrices(
            _best_and_worst(np.array(ours[0]["confusion"]), truth), folder / "figure-7c", VIEWS
        )
        notes = [_ranking(results)]
    table = tables.beside_published(results, METHODS, LABELS_PER_IMAGE, published.CARDIAC)
    parts = [published.CARDIAC_NOTE, table, *notes]
    text = tables.page("Cardiac views, simulated (figure 7)", results, parts)
    return [*written, tables.write(text, folder / "cardiac.md")]


def _best_and_worst(confusion: np.ndarray, truth: np.ndarray) -> list[list[tuple[str, np.ndarray]]]:
    order = np.argsort(-truth)
    shown = [*order[:2], *order[-2:]]
    true = cardiac_annotators()
    return [
        [(NAMES[k], true[k]) for k in shown],
        [("estimated", confusion[k]) for k in shown],
    ]


def _ranking(results: list[Result]) -> str:
    """Say how well the skills are told, for each method that tells any, over its seeds."""
    lines = []
    for method in METHODS:
        own = [r for r in results if r["method"] == method and "skills" in r]
        if not own:
            continue
        correlations = [np.corrcoef(r["skills"], r["true_skills"])[0, 1] for r in own]
        last = sum(set(np.argsort(r["skills"])[:NON_EXPERTS]) == {6, 7} for r in own)
        lines.append(
            f"- {method}: skills estimated and true correlate at "
            f"{np.floor(1000 * min(correlations)) / 1000:.3f} or more; both non-experts come last "
            f"in {last} of {len(own)} runs."
        )
    return "\n".join(lines)


EXPERIMENT = Experiment("cardiac", load, plan, perform, draw)
