"""The training loop: minimises any loss over minibatches of labelled items."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from annotrace.distributed import Processes
from annotrace.errors import DivergenceError, count
from annotrace.training.batches import Batch, CrowdData
from annotrace.training.checkpoint import Checkpoint
from annotrace.training.cuda_graphs import GraphedStep, Step, make_capturer
from annotrace.training.devices import autocast
from annotrace.training.gradients import add_up_gradients
from annotrace.training.history import Callback, Epoch, describe_losses
from annotrace.training.interrupt import Interrupt, graceful_interrupt
from annotrace.training.interruptible import InterruptibleTraining
from annotrace.training.optimizers import scale_learning_rates
from annotrace.training.progress import show_training, skip_training
from annotrace.training.settings import Settings
from annotrace.training.state import TrainingState, start_training


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
    checkpoint: Checkpoint | None = None,
) -> list[Epoch]:
    """Minimise a loss over minibatches of items; leave the network at its best epoch.

    Parameters
    ----------
    network : nn.Module
        All modules that are trained.
    objective : callable
        Returns the loss of a batch.
    data : CrowdData
    items : LongTensor of shape (n_train,)
        The training items.
    settings : Settings
    score : callable, optional
        Returns the score on held-out items; lower is better. The network ends with the weights of
        its best epoch, from which `patience` counts. Without a score it keeps the last weights.
    callbacks : sequence of callable
        Called with every finished epoch; training stops when one returns True.
    verbose : bool
        Whether to show the progress.
    checkpoint : Checkpoint, optional
        Written on Ctrl-C, every minute and at the end. A training that was interrupted resumes from
        it; a finished one is not repeated.

    Returns
    -------
    list of Epoch
    """
    processes = data.processes
    state = start_training(network, settings, data.device, data.random)
    training = InterruptibleTraining(state, settings.epochs, checkpoint, processes)
    if training.resume():
        network.eval()
        skip_training()
        return state.history
    step = _make_step(state, objective, data, len(items), settings)
    with (
        graceful_interrupt(patient=processes.size > 1) as interrupt,
        training.stopped_if_lost(),
        show_training(verbose and processes.is_first, settings.epochs) as progress,
    ):
        scored = None if score is None else _interruptible(score, interrupt)
        while state.epoch < settings.epochs and not _out_of_patience(state, settings):
            batches = _shuffled_batches(data, items, settings, state.epoch)
            _take_steps(training, step, batches, settings, interrupt)
            try:
                _finish_epoch(state, scored, settings, training.started, processes)
            except KeyboardInterrupt:
                if interrupt.requested:
                    training.stop()
                raise
            progress.update(state.epoch, describe_losses(state.history[-1]))
            stop = [callback(state.history[-1]) for callback in callbacks]
            training.stop_if_requested(interrupt)
            if processes.any(any(stop)):
                break
        _finish(state, checkpoint, processes)
    if interrupt.requested:
        raise KeyboardInterrupt
    return state.history


def check_finite(logits: Tensor) -> Tensor:
    """Return logits (n_items, n_classes) unchanged, or raise if any of them is not finite.

    Raises
    ------
    DivergenceError
        The loss may have been finite before the last step, or the items differ from those learned
        from.
    """
    wrong = (~torch.isfinite(logits).all(dim=1)).nonzero().flatten()
    if len(wrong):
        raise DivergenceError(
            f"The network returns NaN or infinity for {count(len(wrong), 'item')}, the first with "
            f"row index {int(wrong[0])}: lower `lr`, or check for features of very different "
            "scales."
        )
    return logits


def _interruptible(score: Callable[[], float], interrupt: Interrupt) -> Callable[[], float]:
    """Return a score that Ctrl-C stops; the training then resumes before it."""

    def scored() -> float:
        with interrupt.at_once():
            return score()

    return scored


def _shuffled_batches(
    data: CrowdData, items: Tensor, settings: Settings, epoch: int
) -> list[tuple[Tensor, int]]:
    """Return the batches of an epoch: their items, and the number of labels of these items."""
    # A separate generator per epoch: a resumed training needs no earlier epochs to find the order.
    generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + epoch)
    order = items[torch.randperm(len(items), generator=generator).to(items.device)]
    parts = list(order.split(settings.batch_size))
    n_labels = data.count_labels(order, settings.batch_size)
    if 1 < len(parts) < len(order) and len(parts[-1]) == 1:
        # Batch normalisation fails on a single row.
        parts[-2:], n_labels[-2:] = [torch.cat(parts[-2:])], [sum(n_labels[-2:])]
    return list(zip(parts, n_labels, strict=True))


def _take_steps(
    training: InterruptibleTraining,
    step: Step,
    batches: list[tuple[Tensor, int]],
    settings: Settings,
    interrupt: Interrupt,
) -> None:
    """Take the steps of an epoch that are left."""
    state = training.state
    state.network.train()
    for item, n_labels in batches[state.batch :]:
        _follow_schedule(state, settings, len(batches))
        with training.draws_undone_if_lost(), state.random.lent():
            step(item, n_labels)
        state.batch += 1
        training.stop_if_requested(interrupt)
        training.save_every_minute()


def _follow_schedule(state: TrainingState, settings: Settings, n_batches: int) -> None:
    if settings.schedule != "constant":
        epochs_done = state.epoch + state.batch / n_batches
        scale_learning_rates(state.optimizers, settings.rate(epochs_done))


def _make_step(
    state: TrainingState,
    objective: Callable[[Batch], Tensor],
    data: CrowdData,
    n_items: int,
    settings: Settings,
) -> Step:
    def step(item: Tensor, n_labels: int) -> None:
        batch = data.training_batch(item, n_labels)
        with autocast(data.device, settings.precision):
            loss = objective(batch)
        total = _descend(state, loss, len(item), data.processes)
        state.loss.add_(total, alpha=len(item) / n_items)

    capturer = make_capturer(
        data.device,
        state.random.generator,
        resident=data.resident,
        scaled=state.scaler.is_enabled(),
    )
    if not settings.cuda_graphs or capturer is None or data.processes.size > 1:
        return step
    return GraphedStep(step, state.optimizers, capturer)


def _descend(state: TrainingState, loss: Tensor, n_items: int, processes: Processes) -> Tensor:
    """Take a step of the optimisers, and return the loss of the whole batch of `n_items`."""
    for optimizer in state.optimizers:
        optimizer.zero_grad(set_to_none=True)
    # Without fp16 the scaler is disabled and passes everything through.
    state.scaler.scale(loss).backward()
    _, share = processes.rows(n_items)
    total = add_up_gradients(state.network.parameters(), loss.detach(), share, processes)
    for optimizer in state.optimizers:
        state.scaler.step(optimizer)
    state.scaler.update()
    return total


def _finish_epoch(
    state: TrainingState,
    score: Callable[[], float] | None,
    settings: Settings,
    started: float,
    processes: Processes,
) -> None:
    loss = float(state.loss)  # waits for the GPU, so the time is taken afterwards
    state.seconds = time.monotonic() - started
    if not math.isfinite(loss):
        raise DivergenceError(
            f"The loss is {loss} in epoch {state.epoch + 1}: lower `lr` "
            f"(it is {settings.lr:g}), or check for features of very different scales."
        )
    # Batch normalisation keeps averages over the rows of each process.
    processes.copy_from_first(list(state.network.buffers()))
    state.network.eval()
    with state.random.lent():
        held_out = None if score is None else float(score())
    state.epoch += 1
    state.history.append(Epoch(state.epoch, loss, held_out, state.seconds))
    state.batch = 0
    state.loss.zero_()
    if held_out is not None and held_out < state.best_score:
        state.best_score = held_out
        state.best_weights = copy.deepcopy(state.network.state_dict())


def _finish(state: TrainingState, checkpoint: Checkpoint | None, processes: Processes) -> None:
    """Leave the network at its best epoch, and store what it has learned."""
    if state.best_weights is not None:
        state.network.load_state_dict(state.best_weights)
    state.network.eval().zero_grad(set_to_none=True)
    if checkpoint is not None and processes.is_first:
        checkpoint.finish(state.outcome())
    processes.any(False)  # The next training must not be saved before this one.


def _out_of_patience(state: TrainingState, settings: Settings) -> bool:
    if settings.patience is None or state.best_weights is None:
        return False
    scores = [epoch.held_out for epoch in state.history]
    return len(scores) - 1 - scores.index(state.best_score) >= settings.patience
