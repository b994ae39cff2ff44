"""What the MNIST experiments share: annotators of ever less skill, and how networks are trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from annotrace.data import load_mnist
from annotrace.errors import InputError
from annotrace.experiments.crowds import FLIPPERS, GROUP, SPAMMERS, qualifying_seeds
from annotrace.experiments.options import Options
from annotrace.experiments.runs import (
    PUBLISHED,
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
SEVERAL_DRAWS = ("trace", "no-trace")
"""Methods that have all the draws; the others have the first, unless more are asked for."""

RECIPES = {
    "paper": Recipe(
        {"protocol": "paper", "backbone": "cnn", "select": "truth"},
        by_method=PUBLISHED,
    ),
    # Without the warm-up most ReLUs of two layers were dead after an epoch. Matrices that learn 10
    # times as fast as the network settled before it told classes apart. (Both were measured before
    # convolutions began by He's rule.) At the published scale the trace takes .02 off a diagonal of
    # .35, most of the error of the matrices that is left.
    "fast": Recipe(
        {
            "backbone": "cnn",
            "batch_size": 200,
            "lr": 3e-3,
            "schedule": "warm-cosine",
            "precision": "bf16",
            "confusion_lr": 3.0,
        },
        by_density={GROUP: {"epochs": 12}, 1: {"epochs": 10}},
        by_method={
            "trace": {**TRAINED_ONCE, "lam": 0.003},
            "gem": {"steps": 3},
            "mbem": {"steps": 2},
        },
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
    """Plan every method on every crowd, skill and density, and some on several draws."""
    recipe = RECIPES[options.protocol]
    asked = options.seeds or draws
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
        for place, seed in enumerate(qualifying_seeds(crowd, skill, asked or DRAWS[crowd]))
        for method in chosen_methods(methods, options)
        if asked or place == 0 or method in SEVERAL_DRAWS
    ]
