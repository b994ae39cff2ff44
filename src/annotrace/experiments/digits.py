"""Every method on scikit-learn's digits: five pairwise flippers, all of them or one an item.

1,400 items to learn from and 397 to test; groups whose mean matrix is diagonally dominant, the
first that qualify. Minutes on a laptop, nothing to download.
"""

from __future__ import annotations

from pathlib import Path

from annotrace.data import load_digits
from annotrace.experiments.crowds import FLIPPERS, GROUP, qualifying_seeds
from annotrace.experiments.options import Options
from annotrace.experiments.performing import perform
from annotrace.experiments.runs import (
    PUBLISHED,
    Experiment,
    Recipe,
    Result,
    Run,
    Split,
    chosen_densities,
    chosen_methods,
)
from annotrace.methods import list_methods

METHODS = tuple(method.name for method in list_methods())
DENSITIES = (GROUP, 1)
SKILL = 0.4
SEEDS = 3

RECIPES = {
    "paper": Recipe({"protocol": "paper", "select": "truth"}, by_method=PUBLISHED),
    "fast": Recipe({}),
}


def load(data_dir: Path | None) -> Split:
    """Load the digits that come with scikit-learn."""
    return load_digits().split(1400)


def plan(options: Options) -> list[Run]:
    """Plan every method, both densities, three draws."""
    recipe = RECIPES[options.protocol]
    return [
        Run(
            "digits",
            "digits",
            method,
            FLIPPERS,
            SKILL,
            density,
            seed,
            options.protocol,
            recipe.settings(method, density, options),
            options.limit_items,
        )
        for density in chosen_densities(DENSITIES, options)
        for seed in qualifying_seeds(FLIPPERS, SKILL, options.seeds or SEEDS)
        for method in chosen_methods(METHODS, options)
    ]


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw the accuracy of every method, and write a table for each density."""
    from annotrace.experiments import drawing, tables

    written = drawing.draw_methods(results, METHODS, folder / "digits")
    densities = sorted({result["density"] for result in results}, reverse=True)
    parts = [tables.by_method(results, METHODS, density) for density in densities]
    return [*written, tables.write(tables.page("Digits", results, parts), folder / "digits.md")]


# Matrices as small as these are faster on one thread than shared between several.
EXPERIMENT = Experiment("digits", load, plan, perform, draw, threads=1)
