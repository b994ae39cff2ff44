"""How a network is trained: the numbers, in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from annotrace.parameters import Count, NotNegative, Positive, check_parameters
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

    epochs: Count = 60
    batch_size: Count = 64
    lr: Positive = 1e-3
    weight_decay: NotNegative = 0.0
    schedule: Schedule = "constant"
    step_every: Count = 50
    patience: Count | None = None
    precision: Precision = "float32"
    seed: int = 0
    fast: bool = True

    def __post_init__(self) -> None:
        check_parameters(self)

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
