"""The state of a training: everything that changes while it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from annotrace.storage import join_parts
from annotrace.training.checkpoint import Checkpoint
from annotrace.training.history import Epoch
from annotrace.training.optimizers import make_optimizers, state_shapes
from annotrace.training.randomness import Randomness
from annotrace.training.records import Record
from annotrace.training.settings import Settings


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

    def progress(self) -> Record:
        """Return the whole state, with which a training continues."""
        best = torch.tensor(self.best_score, dtype=torch.float64)
        tensors = join_parts(
            network=self.network.state_dict(),
            best=self.best_weights or {},
            **{f"optimizer{k}": _moments(each) for k, each in enumerate(self.optimizers)},
        )
        plain = {"epoch": self.epoch, "batch": self.batch, "seconds": self.seconds}
        record = self.outcome()
        return Record(
            {**record.tensors, **tensors, "loss": self.loss, "best_score": best},
            {**plain, "scaler": self.scaler.state_dict()},
        )

    def outcome(self) -> Record:
        """Return what a finished training leaves: weights, history and random state."""
        random = {str(k): state for k, state in enumerate(self.random.state())}
        tensors = join_parts(network=self.network.state_dict(), random=random)
        return Record({**tensors, "history": _pack_history(self.history)}, {})

    def load_outcome(self, record: Record, checkpoint: Checkpoint) -> None:
        """Restore what `outcome` returned.

        Raises
        ------
        RunError
            If it does not fit the network, or is damaged.
        """
        weights = checkpoint.tensors_like(_weights(self.network), record.part("network"))
        self.network.load_state_dict(weights)
        self.history = _unpack_history(record, checkpoint)
        random = record.part("random")
        try:
            self.random.set_state([random[str(k)] for k in range(max(len(random), 1))])
        except (KeyError, RuntimeError, TypeError, ValueError):
            raise checkpoint.damaged("the random state is invalid") from None

    def load_progress(self, record: Record, checkpoint: Checkpoint) -> None:
        """Restore what `progress` returned.

        Raises
        ------
        RunError
            If it does not fit the network, or is damaged.
        """
        self.load_outcome(record, checkpoint)
        for k, optimizer in enumerate(self.optimizers):
            _load_moments(optimizer, record.part(f"optimizer{k}"), checkpoint)
        self.epoch = checkpoint.value(record, "epoch", int)
        self.batch = checkpoint.value(record, "batch", int)
        self.seconds = checkpoint.value(record, "seconds", float)
        if self.epoch != len(self.history) or self.batch < 0:
            raise checkpoint.damaged(f"it is at epoch {self.epoch}, batch {self.batch}")
        self._load_scaler(checkpoint.value(record, "scaler", dict), checkpoint)
        scalars = {"loss": self.loss, "best_score": torch.zeros((), dtype=torch.float64)}
        found = {name: record.tensors[name] for name in scalars if name in record.tensors}
        checkpoint.tensors_like(scalars, found)
        self.loss.copy_(found["loss"])
        self._load_best(float(found["best_score"]), record.part("best"), checkpoint)

    def _load_best(self, score: float, weights: dict[str, Tensor], checkpoint: Checkpoint) -> None:
        """Restore the best epoch, if there was one: an infinite score has no weights."""
        known = [epoch.held_out for epoch in self.history]
        if bool(weights) != (score in known) or (not weights and score != math.inf):
            raise checkpoint.damaged("its best epoch is not in the history")
        self.best_score = score
        self.best_weights = None
        if weights:
            checked = checkpoint.tensors_like(_weights(self.network), weights)
            self.best_weights = {k: each.to(self.loss.device) for k, each in checked.items()}

    def _load_scaler(self, saved: dict[str, Any], checkpoint: Checkpoint) -> None:
        numbers = all(type(value) in (int, float) for value in saved.values())
        if saved.keys() != self.scaler.state_dict().keys() or not numbers:
            raise checkpoint.damaged("the scale of the loss is invalid")
        self.scaler.load_state_dict(saved)


def start_training(
    network: nn.Module, settings: Settings, device: torch.device, random: Randomness
) -> TrainingState:
    """Return the state before the first step."""
    optimizers = make_optimizers(network, lr=settings.lr, weight_decay=settings.weight_decay)
    scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "fp16")
    return TrainingState(network, optimizers, scaler, random, torch.zeros((), device=device))


def _weights(network: nn.Module) -> dict[str, Tensor]:
    """Return the state of a network; its parameters are recognised by their type."""
    return network.state_dict(keep_vars=True)


def _moments(optimizer: Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{k}.{name}": each for k, named in state.items() for name, each in named.items()}


def _load_moments(optimizer: Optimizer, found: dict[str, Tensor], checkpoint: Checkpoint) -> None:
    """Restore the moments; learning rates follow from the settings and the epoch."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in found.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number) if number.isdecimal() else -1, {})[name] = tensor
    for k, named in state.items():
        shapes = {name: tensor.shape for name, tensor in named.items()}
        known = 0 <= k < len(parameters) and shapes == state_shapes(optimizer, parameters[k])
        if not known or not all(bool(tensor.isfinite().all()) for tensor in named.values()):
            raise checkpoint.damaged(f"the state of the optimizer for parameter {k} is invalid")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _pack_history(history: list[Epoch]) -> Tensor:
    """Return epochs as rows: number, loss, whether there is a held-out score, that, seconds."""
    rows = [
        (each.number, each.loss, each.held_out is not None, each.held_out or 0.0, each.seconds)
        for each in history
    ]
    return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), 5)


def _unpack_history(record: Record, checkpoint: Checkpoint) -> list[Epoch]:
    rows = record.tensors.get("history", torch.empty(0))
    numbers = torch.arange(1, len(rows) + 1, dtype=torch.float64)
    if rows.shape != (len(rows), 5) or not torch.equal(rows[:, 0], numbers):
        raise checkpoint.damaged("the history is invalid")
    return [
        Epoch(int(number), loss, held_out if scored else None, seconds)
        for number, loss, scored, held_out, seconds in rows.tolist()
    ]
