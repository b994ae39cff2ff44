"""What the MNIST figures share: groups of annotators of decreasing skill, and the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from annotrace.data import load_mnist
from annotrace.errors import InputError
from annotrace.experiments import figures
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Split
from annotrace.experiments.results import Result
from annotrace.experiments.simulated import FLIPPERS, N_ANNOTATORS, SPAMMERS, qualifying_seeds

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


def draw_by_crowd(
    results: Sequence[Result],
    methods: Sequence[str],
    measures: Sequence[str],
    paths: Mapping[str, Path],
) -> list[Path]:
    """Draw measures against skill, one figure per crowd; return the files."""
    written = []
    for crowd, path in paths.items():
        if own := [r for r in results if r["crowd"] == crowd]:
            written += figures.draw_skill_curves(own, methods, measures, path)
    return written
