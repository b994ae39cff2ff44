"""The training loop. It takes a loss and never knows a method."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from annotrace.errors import DivergenceError, TrainingInterrupted
from annotrace.training.batches import Batch, CrowdData
from annotrace.training.checkpoint import graceful_interrupt, load_checkpoint, save_checkpoint
from annotrace.training.devices import autocast
from annotrace.training.fast_step import FastStep, Step, recorder_for
from annotrace.training.history import Callback, Epoch
from annotrace.training.progress import show_progress
from annotrace.training.settings import Settings
from annotrace.training.state import TrainingState, set_rate, start_training

CHECKPOINT_EVERY_SECONDS = 60


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
        A file to write to on Ctrl-C, every minute and at the end; if it is there, training goes
        on from it, and one that had ended is not repeated.
    fingerprint : str
        Names the settings and data: a checkpoint with another is refused.

    Returns
    -------
    list of Epoch
    """
    state = start_training(network, settings, data.device)
    if checkpoint is not None and checkpoint.exists():
        state.load(load_checkpoint(checkpoint, fingerprint, data.device))

    def save() -> None:
        if checkpoint is not None:
            named = {"fingerprint": fingerprint, "seed": settings.seed}
            save_checkpoint(checkpoint, {**named, **state.to_dict()})

    def stop_if_asked() -> None:
        if interrupt.requested:
            save()
            raise TrainingInterrupted(_how_to_go_on(state, settings, checkpoint))

    step = _make_step(state, objective, data, len(items), settings)
    clock, saved = time.monotonic() - state.seconds, time.monotonic()
    with graceful_interrupt() as interrupt, show_progress(verbose, settings.epochs) as progress:
        while state.epoch < settings.epochs and not state.finished:
            for _ in _steps_of_an_epoch(state, step, data, items, settings):
                state.seconds = time.monotonic() - clock
                stop_if_asked()
            _finish_epoch(state, score, settings, clock)
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
    network.eval().zero_grad(set_to_none=True)
    if not state.finished:
        state.finished = True
        save()
    return state.history


def _steps_of_an_epoch(
    state: TrainingState, step: Step, data: CrowdData, items: Tensor, settings: Settings
) -> Iterator[None]:
    """Make the steps that are left of an epoch, one each time that the next is asked for."""
    order = _shuffle(items, settings, state.epoch)
    parts = list(order.split(settings.batch_size))
    n_labels = data.count_labels(order, settings.batch_size)
    if 1 < len(parts) < len(order) and len(parts[-1]) == 1:
        # Batch norm cannot learn from a single row.
        parts[-2:], n_labels[-2:] = [torch.cat(parts[-2:])], [sum(n_labels[-2:])]
    state.network.train()
    while state.batch < len(parts):
        set_rate(state, settings, state.epoch + state.batch / len(parts))
        step(parts[state.batch], n_labels[state.batch])
        state.batch += 1
        yield


def _make_step(
    state: TrainingState,
    objective: Callable[[Batch], Tensor],
    data: CrowdData,
    n_items: int,
    settings: Settings,
) -> Step:
    def step(item: Tensor, n_labels: int) -> None:
        loss = _descend(state, objective, data.batch(item, n_labels), settings)
        state.loss.add_(loss, alpha=len(item) / n_items)

    recorder = recorder_for(
        data.device,
        state.optimizers,
        resident=data.resident,
        scaled=state.scaler.is_enabled(),
    )
    if not settings.fast or recorder is None:
        return step
    return FastStep(step, state.optimizers, recorder)


def _shuffle(items: Tensor, settings: Settings, epoch: int) -> Tensor:
    # A generator of its own for each epoch: a resumed training finds the order without a replay.
    generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + epoch)
    return items[torch.randperm(len(items), generator=generator).to(items.device)]


def _descend(
    state: TrainingState, objective: Callable[[Batch], Tensor], batch: Batch, settings: Settings
) -> Tensor:
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
    return loss.detach()


def _finish_epoch(
    state: TrainingState, score: Callable[[], float] | None, settings: Settings, clock: float
) -> None:
    loss = float(state.loss)
    state.seconds = time.monotonic() - clock
    if not math.isfinite(loss):
        raise DivergenceError(
            f"The loss is {loss} in epoch {state.epoch + 1}: lower `lr` "
            f"(it is {settings.lr:g}), or look for features of very different scales."
        )
    state.network.eval()
    held_out = None if score is None else float(score())
    state.epoch += 1
    state.history.append(Epoch(state.epoch, loss, held_out, state.seconds))
    state.batch = 0
    state.loss.zero_()
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
