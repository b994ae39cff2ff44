"""The training loop. It takes a loss and never knows a method."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from annotrace.errors import DivergenceError, TrainingInterrupted
from annotrace.models import RowAdam, parameter_groups
from annotrace.training.batches import Batch, CrowdData
from annotrace.training.checkpoint import graceful_interrupt, load_checkpoint, save_checkpoint
from annotrace.training.devices import autocast, get_random_state, set_random_state
from annotrace.training.history import Callback, Epoch
from annotrace.training.progress import show_progress
from annotrace.training.settings import Settings

CHECKPOINT_EVERY_SECONDS = 60


@dataclass
class TrainingState:
    """All that changes while training: what a checkpoint holds."""

    network: nn.Module
    optimizers: list[Optimizer]
    scaler: torch.amp.GradScaler
    epoch: int = 0
    batch: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    best_score: float = float("inf")
    best_weights: dict[str, Tensor] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give everything as tensors and plain values."""
        return {
            "network": self.network.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "scaler": self.scaler.state_dict(),
            "random": get_random_state(),
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
        for name in _PLAIN:
            setattr(self, name, state[name])


_PLAIN = ("epoch", "batch", "loss", "seconds", "best_score", "best_weights")


def train(
    network: nn.Module,
    objective: Callable[[Batch], Tensor],
    data: CrowdData,
    items: Tensor,
    settings: Settings,
    *,
    score: Callable[[], float] | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
    checkpoint: Path | None = None,
    fingerprint: str = "",
) -> list[Epoch]:
    """Minimise a loss over minibatches of items; the network ends at its best epoch.

    Parameters
    ----------
    network : nn.Module
        All that is learned.
    objective : callable
        From a batch to a loss.
    data : CrowdData
    items : LongTensor
        The items to learn from.
    settings : Settings
    score : callable, optional
        A held-out score, lower is better: the weights of the best epoch are kept, and `patience`
        counts from it. Without one the last epoch's weights stay.
    callbacks : sequence of callable
        Told of every epoch; training stops when one returns True.
    verbose : bool
    checkpoint : Path, optional
        A file to write to on Ctrl-C and every minute; if it is there, training goes on from it.
    fingerprint : str
        Names the settings and data: a checkpoint with another is refused.

    Returns
    -------
    list of Epoch
    """
    state = _start(network, settings, data.device)
    if checkpoint is not None and checkpoint.exists():
        state.load(load_checkpoint(checkpoint, fingerprint, data.device))

    def save() -> None:
        if checkpoint is not None:
            save_checkpoint(checkpoint, {"fingerprint": fingerprint, **state.to_dict()})

    def stop_if_asked() -> None:
        if interrupt.requested:
            save()
            raise TrainingInterrupted(_how_to_go_on(state, settings, checkpoint))

    clock, saved = time.monotonic() - state.seconds, time.monotonic()
    with graceful_interrupt() as interrupt, show_progress(verbose, settings.epochs) as progress:
        while state.epoch < settings.epochs:
            parts = _shuffle(items, settings, state.epoch).split(settings.batch_size)
            network.train()
            while state.batch < len(parts):
                _set_rate(state, settings, state.epoch + state.batch / len(parts))
                loss = _step(state, objective, data.batch(parts[state.batch]), settings)
                state.loss += loss * len(parts[state.batch]) / len(items)
                state.batch += 1
                state.seconds = time.monotonic() - clock
                stop_if_asked()
            _finish_epoch(state, score, settings)
            progress.update(state.history[-1])
            stop = [callback(state.history[-1]) for callback in callbacks]
            stop_if_asked()
            if any(stop) or _out_of_patience(state, settings):
                break
            if time.monotonic() - saved > CHECKPOINT_EVERY_SECONDS:
                save()
                saved = time.monotonic()
    if state.best_weights is not None:
        network.load_state_dict(state.best_weights)
    network.eval()
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return state.history


def _start(network: nn.Module, settings: Settings, device: torch.device) -> TrainingState:
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
    return TrainingState(network, optimizers, scaler)


def _shuffle(items: Tensor, settings: Settings, epoch: int) -> Tensor:
    # A generator of its own for each epoch: a resumed training finds the order without a replay.
    generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + epoch)
    return items[torch.randperm(len(items), generator=generator).to(items.device)]


def _set_rate(state: TrainingState, settings: Settings, epochs_done: float) -> None:
    if settings.schedule == "constant":
        return
    factor = settings.rate(epochs_done)
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["full_rate"] * factor


def _step(
    state: TrainingState, objective: Callable[[Batch], Tensor], batch: Batch, settings: Settings
) -> float:
    with autocast(batch.item.device, settings.precision):
        loss = objective(batch)
    for optimizer in state.optimizers:
        optimizer.zero_grad(set_to_none=True)
    if state.scaler.is_enabled():
        state.scaler.scale(loss).backward()
        for optimizer in state.optimizers:
            state.scaler.step(optimizer)
        state.scaler.update()
    else:
        loss.backward()
        for optimizer in state.optimizers:
            optimizer.step()
    return float(loss.detach())


def _finish_epoch(
    state: TrainingState, score: Callable[[], float] | None, settings: Settings
) -> None:
    if not math.isfinite(state.loss):
        raise DivergenceError(
            f"The loss is {state.loss} in epoch {state.epoch + 1}: lower `lr` "
            f"(it is {settings.lr:g}), or look for features of very different scales."
        )
    state.network.eval()
    held_out = None if score is None else float(score())
    state.epoch += 1
    state.history.append(Epoch(state.epoch, state.loss, held_out, state.seconds))
    state.batch, state.loss = 0, 0.0
    if held_out is not None and held_out < state.best_score:
        state.best_score = held_out
        state.best_weights = copy.deepcopy(state.network.state_dict())


def _out_of_patience(state: TrainingState, settings: Settings) -> bool:
    if settings.patience is None or state.best_weights is None:
        return False
    scores = [epoch.held_out for epoch in state.history]
    return len(scores) - 1 - scores.index(state.best_score) >= settings.patience


def _how_to_go_on(state: TrainingState, settings: Settings, checkpoint: Path | None) -> str:
    where = f"Stopped after {state.epoch} of {settings.epochs} epochs."
    if checkpoint is None:
        return f"{where} Nothing was saved: give `checkpoint=` a file to be able to go on."
    return f"{where} Saved to {checkpoint}; the same call goes on from there."
