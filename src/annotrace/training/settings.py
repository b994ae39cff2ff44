"""The settings of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from annotrace.parameters import Count, NotNegative, Positive, check_parameters
from annotrace.training.devices import Precision

Schedule: TypeAlias = Literal["constant", "step", "cosine", "warm-cosine"]

WARM_UP_FRACTION = 0.1
"""Fraction of the training in which "warm-cosine" raises the learning rate."""


@dataclass(frozen=True)
class Settings:
    """The settings of a training.

    Attributes
    ----------
    epochs, batch_size : int
    lr, weight_decay : float
        Those of the network; weight decay is an L2 penalty, as in Adam.
    schedule : {"constant", "step", "cosine", "warm-cosine"}
        "step" divides the learning rate by ten every `step_every` epochs; "cosine" anneals it to
        zero; "warm-cosine" first raises it linearly from zero over a tenth of the epochs, because
        the first steps of Adam at a high rate can leave ReLUs permanently dead.
    step_every : int
    patience : int, optional
        Stop after this many epochs without a better score on the held-out items.
    precision : {"float32", "bf16", "fp16"}
    seed : int
    cuda_graphs : bool
        Replay training steps from CUDA graphs where possible; the result is the same up to
        rounding. Use False for a network whose forward pass depends on Python state, such as a
        counter: a replay does not run Python code.
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
    cuda_graphs: bool = True

    def __post_init__(self) -> None:
        check_parameters(self)

    def rate(self, epochs_done: float) -> float:
        """Return the factor of the learning rate after a (fractional) number of epochs."""
        if self.schedule == "step":
            return 0.1 ** (int(epochs_done) // self.step_every)
        if self.schedule == "constant":
            return 1.0
        done = min(1.0, epochs_done / self.epochs)
        warm_up = WARM_UP_FRACTION if self.schedule == "warm-cosine" else 0.0
        if done < warm_up:
            return done / warm_up
        return 0.5 * (1 + math.cos(math.pi * (done - warm_up) / (1 - warm_up)))
