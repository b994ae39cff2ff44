"""Table 1 and figure 2: every method on CIFAR-10, four annotators who are right 45 % of the time.

A hammer-spammer, one who mixes up similar classes, one who mixes up neighbours, and an adversary.
All four label each image, or one of them, drawn at random, does. The seed draws labels, weights and
the held-out tenth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotrace.data import load_cifar10
from annotrace.errors import InputError
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import (
    TRAINED_ONCE,
    Experiment,
    Recipe,
    Result,
    Run,
    Split,
    chosen_densities,
    chosen_methods,
)
from annotrace.simulate import cifar10_annotators

PUBLISHED = (
    "trace",
    "no-trace",
    "mbem",
    "gem",
    "single-cm",
    "wdn",
    "soft-bootstrap",
    "vanilla",
)
OURS = ("crossfit",)
METHODS = (*PUBLISHED, *OURS)
DENSITIES = (4, 1)
SEEDS = 3
ANNOTATORS = ("hammer-spammer", "mixes similar classes", "mixes neighbours", "adversary")

RECIPES = {
    "paper": Recipe(
        {"protocol": "paper", "backbone": "resnet50", "schedule": "step", "select": "truth"},
        by_method={
            "gem": {"steps": 2, "smoothing": 0.0},
            "mbem": {"steps": 2, "smoothing": 0.0},
            "vanilla": {"weight_decay": 1e-4},
            "crossfit": {"epochs": None},
        },
    ),
    "fast": Recipe(
        {
            "backbone": "resnet9",
            "batch_size": 250,
            "lr": 1e-3,
            "schedule": "cosine",
            "weight_decay": 2e-3,
            "precision": "bf16",
            "confusion_lr": 10.0,
        },
        by_density={4: {"epochs": 20}, 1: {"epochs": 12}},
        # Cross-fitted EM trains a network a fold, in rounds of so many epochs, twice in the first.
        by_method={
            "trace": TRAINED_ONCE,
            "gem": {"steps": 2},
            "mbem": {"steps": 2},
            "crossfit": {"folds": 3, "rounds": 2, "restarts": 1, "mixup": 0.0, "epochs": 6},
        },
    ),
}


def load(data_dir: Path | None) -> Split:
    """Load CIFAR-10."""
    if data_dir is None:
        raise InputError(
            "cifar10-table needs CIFAR-10: give --data-dir the folder of its binary version."
        )
    return load_cifar10(data_dir)


def plan(options: Options) -> list[Run]:
    """Plan every method with dense labels and with one label an image."""
    recipe = RECIPES[options.protocol]
    return [
        Run(
            "cifar10-table",
            "cifar10",
            method,
            "cifar10",
            None,
            density,
            seed,
            options.protocol,
            recipe.settings(method, density, options),
            options.limit_items,
            keep=("confusion",),
        )
        for density in chosen_densities(DENSITIES, options)
        for seed in range(options.seeds or SEEDS)
        for method in chosen_methods(METHODS, options)
    ]


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Write the table beside the paper's; draw the true matrices over those estimated."""
    from annotrace.experiments import drawing, tables

    written = []
    shown = [r for r in results if r["method"] == "trace" and r["density"] == 1]
    if shown:
        truth = list(zip(ANNOTATORS, cifar10_annotators(), strict=True))
        estimate = [("estimated", np.array(matrix)) for matrix in shown[0]["confusion"]]
        written = drawing.draw_matrices([truth, estimate], folder / "figure-2")
    return [*written, tables.write(table(results), folder / "cifar10-table.md")]


def table(results: list[Result]) -> str:
    """Give table 1 as a Markdown page: the paper's numbers and ours."""
    from annotrace.experiments import published, tables

    parts = [
        tables.beside_published(results, METHODS, density, published.CIFAR10[density], unit=10)
        for density in DENSITIES
    ]
    return tables.page("CIFAR-10 (table 1)", results, [*parts, tables.CM_ERROR_NOTE])


EXPERIMENT = Experiment("cifar10-table", load, plan, perform, draw)
