"""Where settings come from when the caller gives none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Protocol:
    """Settings that belong together.

    Attributes
    ----------
    training : dict
        For `annotrace.training.Settings`.
    confusion_lr : float
        How many times the network's rate the confusion matrices learn at.
    diagonal : float or None
        Where their diagonal starts; None for the paper's weights 6I - 5.
    pool : bool or "auto"
        Whether annotators share a matrix from which each deviates.
    joint : bool
        Whether the labels of an item are taken together.
    mixup : float or "auto"
        Parameter of the Beta distribution of mixup, 0 for none; "auto" lets held-out labels choose.
    restarts : int
        Trainings from different starts, of which the one is kept that explains held-out labels
        best.
    mend : bool
        Whether to train again where classes have traded names or are lost.
    calibrate : bool
        Whether logits are divided by the temperature at which held-out labels are likeliest.
    """

    training: dict[str, Any]
    confusion_lr: float
    diagonal: float | None
    pool: bool | Literal["auto"]
    joint: bool
    mixup: float | Literal["auto"]
    restarts: int
    mend: bool
    calibrate: bool


# docs/methods.md has what was tried, and what it gave.
PROTOCOLS = {
    "default": Protocol(
        {"epochs": 60, "batch_size": 64, "lr": 1e-3},
        confusion_lr=30.0,
        diagonal=0.7,
        pool="auto",
        joint=True,
        mixup="auto",
        restarts=2,
        mend=True,
        calibrate=True,
    ),
    "paper": Protocol(
        {"epochs": 200, "batch_size": 50, "lr": 1e-3},
        confusion_lr=1.0,
        diagonal=None,
        pool=False,
        joint=False,
        mixup=0.0,
        restarts=1,
        mend=False,
        calibrate=False,
    ),
}
