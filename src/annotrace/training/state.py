"""All that changes while training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from annotrace.training.devices import get_random_state, set_random_state
from annotrace.training.history import Epoch
from annotrace.training.optimizers import RowAdam, parameter_groups
from annotrace.training.settings import Settings


@dataclass
class TrainingState:
    """All that changes while training: what a checkpoint holds.

    The mean loss of the epoch so far stays on the device, so that no step waits for it.
    """

    network: nn.Module
    optimizers: list[Optimizer]
    scaler: torch.amp.GradScaler
    loss: Tensor
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    best_score: float = float("inf")
    best_weights: dict[str, Tensor] | None = None
    finished: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give everything as tensors and plain values."""
        return {
            "network": self.network.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "scaler": self.scaler.state_dict(),
            "random": get_random_state(),
            "loss": self.loss,
            "history": [vars(epoch) for epoch in self.history],
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take everything back from `to_dict`."""
        self.network.load_state_dict(state["network"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.scaler.load_state_dict(state["scaler"])
        set_random_state(state["random"])
        self.history = [Epoch(**epoch) for epoch in state["history"]]
        self.loss.fill_(state["loss"])
        for name in _PLAIN:
            setattr(self, name, state[name])


_PLAIN = ("epoch", "batch", "seconds", "best_score", "best_weights", "finished")


def start_training(network: nn.Module, settings: Settings, device: torch.device) -> TrainingState:
    """Make the optimisers of a network: Adam, and `RowAdam` for layers of sparse gradients."""
    groups = parameter_groups(network, lr=settings.lr, weight_decay=settings.weight_decay)
    sparse = {
        id(part.weight)
        for part in network.modules()
        if hasattr(part, "lr_scale") and getattr(part, "sparse", False)
    }
    by_row = [group for group in groups if id(group["params"][0]) in sparse]
    dense = [group for group in groups if id(group["params"][0]) not in sparse]
    optimizers: list[Optimizer] = []
    if dense:
        optimizers.append(torch.optim.Adam(dense, fused=True))
    for group in by_row:
        optimizers.append(RowAdam(group["params"], lr=group["lr"]))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["full_rate"] = group["lr"]
    scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "fp16")
    return TrainingState(network, optimizers, scaler, torch.zeros((), device=device))


def set_rate(state: TrainingState, settings: Settings, epochs_done: float) -> None:
    """Set the learning rates that the schedule has after so many epochs, a fraction allowed."""
    if settings.schedule == "constant":
        return
    factor = settings.rate(epochs_done)
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            rate = group["full_rate"] * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
