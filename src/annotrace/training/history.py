"""The history of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True)
class Epoch:
    """The record of one epoch.

    Attributes
    ----------
    number : int
        Starts at 1.
    loss : float
        Mean training loss over the items.
    held_out : float or None
        Score on the held-out items; lower is better.
    seconds : float
        Time since the start of the training.
    """

    number: int
    loss: float
    held_out: float | None
    seconds: float


Callback: TypeAlias = Callable[[Epoch], bool | None]
"""Called after every epoch; training stops when it returns True."""


def best_epoch(history: list[Epoch]) -> Epoch | None:
    """Return the epoch with the lowest held-out score, or None without held-out items."""
    scored = [epoch for epoch in history if epoch.held_out is not None]
    return min(scored, key=lambda epoch: epoch.held_out or 0.0, default=None)


def held_out_loss(history: list[Epoch]) -> float:
    """Return the lowest held-out score, or 0 without held-out items."""
    best = best_epoch(history)
    return 0.0 if best is None or best.held_out is None else best.held_out


def join_histories(*histories: list[Epoch]) -> list[Epoch]:
    """Concatenate histories; numbers and times of each continue those of the one before."""
    joined: list[Epoch] = []
    for history in histories:
        number, seconds = (joined[-1].number, joined[-1].seconds) if joined else (0, 0.0)
        joined += [
            replace(epoch, number=epoch.number + number, seconds=epoch.seconds + seconds)
            for epoch in history
        ]
    return joined


def describe_losses(epoch: Epoch) -> str:
    """Describe the loss and the held-out score of an epoch, for the progress display."""
    held_out = "" if epoch.held_out is None else f"  held-out {epoch.held_out:.4f}"
    return f"loss {epoch.loss:.4f}{held_out}"
