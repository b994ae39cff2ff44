"""Default settings that belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from annotrace.methods.recipe import Recipe


@dataclass(frozen=True)
class Protocol:
    """The settings used where an estimator's parameters are None.

    Attributes
    ----------
    training : dict
        For `annotrace.training.Settings`.
    confusion_lr : float
        Learning rate of the confusion matrices as a multiple of the network's.
    diagonal : float or None
        Initial probability of a correct label; None for the paper's weights 6I - 5.
    structure : str
        Of the annotator model.
    joint : bool
        Whether the labels of an item are taken together.
    recipe : Recipe or None
        For methods that train with the recipe by default.
    """

    training: dict[str, Any]
    confusion_lr: float
    diagonal: float | None
    structure: str
    joint: bool
    recipe: Recipe | None


# docs/methods.md has what was tried, and what it gave.
PROTOCOLS = {
    "default": Protocol(
        {"epochs": 60, "batch_size": 64, "lr": 1e-3},
        confusion_lr=30.0,
        diagonal=0.7,
        structure="auto",
        joint=True,
        recipe=Recipe(),
    ),
    "paper": Protocol(
        {"epochs": 200, "batch_size": 50, "lr": 1e-3},
        confusion_lr=1.0,
        diagonal=None,
        structure="full",
        joint=False,
        recipe=None,
    ),
}
