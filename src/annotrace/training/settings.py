"""How a network is trained: the numbers, in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, TypeAlias, get_args

from annotrace.errors import InputError
from annotrace.training.devices import Precision

Schedule: TypeAlias = Literal["constant", "step", "cosine", "warm-cosine"]

WARM_UP = 0.1
"""The part of a training in which "warm-cosine" raises the rate."""


@dataclass(frozen=True)
class Settings:
    """The numbers of a training.

    Attributes
    ----------
    epochs, batch_size : int
    lr, weight_decay : float
        Of the network; weight decay is an L2 penalty, as in Adam.
    schedule : {"constant", "step", "cosine", "warm-cosine"}
        "step" divides the rate by ten every `step_every` epochs, "cosine" brings it to zero;
        "warm-cosine" first raises it from zero, over a tenth of the epochs: at a high rate the
        first steps of Adam leave ReLUs dead for good.
    step_every : int
    patience : int, optional
        Stop after so many epochs without a better score on the held-out part.
    precision : {"float32", "bf16", "fp16"}
    seed : int
    fast : bool
        Replay recorded steps on a GPU, where a step can be recorded; the result is the same but
        for rounding. For a network whose forward pass depends on what Python counts or keeps,
        False: a replay does not pass through Python.
    """

    epochs: int = 60
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    step_every: int = 50
    patience: int | None = None
    precision: Precision = "float32"
    seed: int = 0
    fast: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "step_every"):
            value = getattr(self, name)
            right = isinstance(value, Integral) and int(value) > 0
            _check(right, self, name, "a whole number larger than 0")
        _check(self.lr > 0, self, "lr")
        _check(self.weight_decay >= 0, self, "weight_decay", "at least 0")
        _check(self.patience is None or self.patience > 0, self, "patience")
        _check(self.schedule in get_args(Schedule), self, "schedule", _SCHEDULES)
        _check(self.precision in ("float32", "bf16", "fp16"), self, "precision", _PRECISIONS)

    def rate(self, epochs_done: float) -> float:
        """Give the factor on the learning rate after so many epochs, a fraction allowed."""
        if self.schedule == "step":
            return 0.1 ** (int(epochs_done) // self.step_every)
        if self.schedule == "constant":
            return 1.0
        done = min(1.0, epochs_done / self.epochs)
        warm_up = WARM_UP if self.schedule == "warm-cosine" else 0.0
        if done < warm_up:
            return done / warm_up
        return 0.5 * (1 + math.cos(math.pi * (done - warm_up) / (1 - warm_up)))


_SCHEDULES = "'constant', 'step', 'cosine' or 'warm-cosine'"
_PRECISIONS = "'float32', 'bf16' or 'fp16'"


def _check(right: bool, settings: Settings, name: str, wanted: str = "larger than 0") -> None:
    if not right:
        raise InputError(f"Expected `{name}` to be {wanted}, but got {getattr(settings, name)!r}.")
