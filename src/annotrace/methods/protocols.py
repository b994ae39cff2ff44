"""Where settings come from when the caller gives none."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """

    training: dict[str, Any] = field(default_factory=dict)
    confusion_lr: float = 10.0


PROTOCOLS = {
    "default": Protocol({"epochs": 60, "batch_size": 64, "lr": 1e-3}),
    "paper": Protocol({"epochs": 200, "batch_size": 50, "lr": 1e-3}, confusion_lr=1.0),
}
