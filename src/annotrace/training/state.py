"""The state of a training: everything that changes while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from annotrace.training.history import Epoch
from annotrace.training.optimizers import make_optimizers
from annotrace.training.randomness import Randomness
from annotrace.training.settings import Settings

_PLAIN = ("epoch", "batch", "seconds", "best_score", "best_weights", "finished")


@dataclass
class TrainingState:
    """Everything that changes during training, and so the content of a checkpoint.

    The mean loss of the current epoch stays on the device, so that no step waits for it.
    """

    network: nn.Module
    optimizers: list[Optimizer]
    scaler: torch.amp.GradScaler
    random: Randomness
    loss: Tensor
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    best_score: float = float("inf")
    best_weights: dict[str, Tensor] | None = None
    finished: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the state as tensors and plain values."""
        return {
            "network": self.network.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "scaler": self.scaler.state_dict(),
            "random": self.random.state(),
            "loss": self.loss,
            "history": [vars(epoch) for epoch in self.history],
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore the state that `to_dict` returned."""
        self.network.load_state_dict(state["network"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.scaler.load_state_dict(state["scaler"])
        self.random.set_state(state["random"])
        self.history = [Epoch(**epoch) for epoch in state["history"]]
        self.loss.fill_(state["loss"])
        for name in _PLAIN:
            setattr(self, name, state[name])


def start_training(
    network: nn.Module, settings: Settings, device: torch.device, random: Randomness
) -> TrainingState:
    """Return the state before the first step."""
    optimizers = make_optimizers(network, lr=settings.lr, weight_decay=settings.weight_decay)
    scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "fp16")
    return TrainingState(network, optimizers, scaler, random, torch.zeros((), device=device))
