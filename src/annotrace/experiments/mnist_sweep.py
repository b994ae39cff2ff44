"""What the MNIST experiments share: annotators of ever less skill, and how networks are trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from annotrace.data import load_mnist
from annotrace.errors import InputError
from annotrace.experiments.crowds import FLIPPERS, GROUP, SPAMMERS, qualifying_seeds
from annotrace.experiments.options import Options
from annotrace.experiments.runs import (
    TRAINED_ONCE,
    Recipe,
    Run,
    Split,
    chosen_densities,
    chosen_methods,
)

CROWDS = (FLIPPERS, SPAMMERS)
DENSITIES = (GROUP, 1)
SKILLS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 0.9)
# Spammers of one skill are all alike, so that more draws would say the same again.
DRAWS = {FLIPPERS: 3, SPAMMERS: 1}

# The paper does not tell T and G for MNIST; these are those of its cardiac experiments.
RECIPES = {
    "paper": Recipe(
        {"protocol": "paper", "backbone": "cnn", "select": "truth"},
        by_method={
            "gem": {"steps": 10, "smoothing": 0.0},
            "mbem": {"steps": 10, "smoothing": 0.0},
            "vanilla": {"weight_decay": 1e-4},
        },
    ),
    # The network of four convolutions is slow to start: matrices that learn 10 times as fast, or
    # few large batches, settle before it tells classes apart, and lose one (p = .35, one label:
    # .89 after 8 epochs of 250 at 3e-3 and 10 x; .98 after 4 of 100 at 2e-3 and 5 x).
    "fast": Recipe(
        {
            "backbone": "cnn",
            "batch_size": 100,
            "epochs": 6,
            "lr": 2e-3,
            "schedule": "cosine",
            "confusion_lr": 5.0,
        },
        by_method={"trace": TRAINED_ONCE, "gem": {"steps": 3}, "mbem": {"steps": 2}},
    ),
}


def load(data_dir: Path | None) -> Split:
    """Load MNIST."""
    if data_dir is None:
        raise InputError("This experiment needs MNIST: give --data-dir the folder of its files.")
    return load_mnist(data_dir)


def plan_sweep(
    experiment: str,
    methods: tuple[str, ...],
    options: Options,
    *,
    crowds: Sequence[str] = CROWDS,
    skills: Sequence[float] = SKILLS,
    densities: Sequence[int] = DENSITIES,
    draws: int | None = None,
) -> list[Run]:
    """Plan every method on every crowd, skill, density and draw."""
    recipe = RECIPES[options.protocol]
    return [
        Run(
            experiment,
            "mnist",
            method,
            crowd,
            skill,
            density,
            seed,
            options.protocol,
            recipe.settings(method, density, options),
            options.limit_items,
        )
        for crowd in crowds
        for density in chosen_densities(densities, options)
        for skill in options.skills or skills
        for seed in qualifying_seeds(crowd, skill, options.seeds or draws or DRAWS[crowd])
        for method in chosen_methods(methods, options)
    ]
