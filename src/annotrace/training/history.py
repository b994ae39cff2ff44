"""What happened in each epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True)
class Epoch:
    """One epoch.

    Attributes
    ----------
    number : int
        From 1.
    loss : float
        Mean over the batches.
    held_out : float or None
        The score on the held-out part, lower is better.
    seconds : float
        Since training began.
    """

    number: int
    loss: float
    held_out: float | None
    seconds: float


Callback: TypeAlias = Callable[[Epoch], bool | None]
"""Called after every epoch; training stops when it returns True."""


def best_epoch(history: list[Epoch]) -> Epoch | None:
    """Give the epoch with the lowest held-out score, if there was a held-out part."""
    scored = [epoch for epoch in history if epoch.held_out is not None]
    return min(scored, key=lambda epoch: epoch.held_out or 0.0, default=None)


def held_out_loss(history: list[Epoch]) -> float:
    """Give the lowest held-out score; without a held-out part all trainings are level, at 0."""
    best = best_epoch(history)
    return 0.0 if best is None or best.held_out is None else best.held_out


def join_histories(before: list[Epoch], after: list[Epoch]) -> list[Epoch]:
    """Give two trainings as one, the epochs of the second numbered on from the first."""
    done = before[-1] if before else Epoch(0, 0.0, None, 0.0)
    return before + [
        replace(epoch, number=epoch.number + done.number, seconds=epoch.seconds + done.seconds)
        for epoch in after
    ]
