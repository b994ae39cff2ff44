"""The groups of annotators of the experiments, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis import dominant_draws
from annotrace.errors import InputError
from annotrace.experiments.cardiac_views import cardiac_annotators
from annotrace.experiments.runs import Run
from annotrace.simulate import cifar10_annotators, hammer_spammers, pairwise_flippers

FLIPPERS, SPAMMERS = "pairwise-flippers", "hammer-spammers"
GROUP = 5
CLASSES = 10
TRIES = 1000
"""Seeds tried before a skill counts as one where no draw qualifies: of pairwise flippers at .25 one
in a million does."""

_DRAWN: dict[str, Callable[..., NDArray[np.float64]]] = {
    FLIPPERS: pairwise_flippers,
    SPAMMERS: hammer_spammers,
}
_FIXED = {"cifar10": cifar10_annotators, "cardiac": cardiac_annotators}


def confusion_of(run: Run) -> NDArray[np.float64]:
    """Give the true matrices of a run's crowd, (n_annotators, n_classes, n_classes)."""
    if run.crowd in _FIXED:
        return _FIXED[run.crowd]()
    return _draw(run.crowd, run.skill or 0.0)(run.seed)


@cache
def qualifying_seeds(crowd: str, skill: float, n_draws: int) -> tuple[int, ...]:
    """Give the first seeds whose group has a diagonally dominant mean matrix.

    Where none does, these are the first seeds of all: the experiments show what happens then.

    Raises
    ------
    InputError
        If some do, but fewer than are wanted.
    """
    draws = dominant_draws(_draw(crowd, skill), n_draws, tries=TRIES)
    if not draws:
        return tuple(range(n_draws))
    if (found := len(draws)) < n_draws:
        raise InputError(
            f"{crowd} at {skill:g}: {found} of the first {TRIES:,} groups have a diagonally "
            f"dominant mean matrix, and {n_draws} are wanted; give --seeds {found} or fewer."
        )
    return tuple(seed for seed, _ in draws)


def _draw(crowd: str, skill: float) -> Callable[[int], NDArray[np.float64]]:
    return partial(_DRAWN[crowd], GROUP, CLASSES, skill)
