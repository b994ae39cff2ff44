"""Where settings come from when the caller gives none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    """

    training: dict[str, Any]
    confusion_lr: float
    diagonal: float | None


# Digits, one label an item, five pairwise flippers at skill .35, ten draws: test accuracy .936 and
# none below .816 with a rate of 30 and a diagonal of .7; .77 (five draws) with 10 and 6I - 5.
PROTOCOLS = {
    "default": Protocol({"epochs": 60, "batch_size": 64, "lr": 1e-3}, 30.0, 0.7),
    "paper": Protocol({"epochs": 200, "batch_size": 50, "lr": 1e-3}, 1.0, None),
}
