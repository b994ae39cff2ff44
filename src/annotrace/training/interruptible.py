"""A training that may be interrupted: where it resumes, when it is saved, and how it stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from annotrace.distributed import Processes
from annotrace.errors import ProcessLostError, TrainingInterrupted
from annotrace.training.checkpoint import Checkpoint
from annotrace.training.interrupt import Interrupt
from annotrace.training.state import TrainingState

CHECKPOINT_SECONDS = 60


class InterruptibleTraining:
    """A training whose state is saved every minute and when it stops before its end.

    Several processes have the same state after every step. The first one saves it, or any that is
    left when the first has ended.

    Parameters
    ----------
    state : TrainingState
    n_epochs : int
        How many epochs it takes at most, for messages.
    checkpoint : Checkpoint or None
    processes : Processes

    Attributes
    ----------
    started : float
        When the training would have started if it had never been interrupted, a monotonic time.
    """

    def __init__(
        self,
        state: TrainingState,
        n_epochs: int,
        checkpoint: Checkpoint | None,
        processes: Processes,
    ) -> None:
        self.state, self._n_epochs = state, n_epochs
        self._checkpoint, self._processes = checkpoint, processes
        self.started = self._saved = time.monotonic()

    def resume(self) -> bool:
        """Restore what was saved of the training, and return whether it has finished."""
        has_finished = self._checkpoint is not None and self._restore(self._checkpoint)
        if not has_finished:
            self._begin_alike()
        self.started = time.monotonic() - self.state.seconds
        return has_finished

    def save_every_minute(self) -> None:
        """Save the state if it was not saved for a minute."""
        if self._processes.is_first and time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self._save()
            self._saved = time.monotonic()

    def stop_if_requested(self, interrupt: Interrupt) -> None:
        """Stop if any process was interrupted."""
        if self._processes.any(interrupt.requested):
            self.stop()

    def stop(self) -> NoReturn:
        """Save the state and raise `TrainingInterrupted`."""
        raise TrainingInterrupted(self._save_by_one())

    @contextmanager
    def stopped_if_lost(self) -> Iterator[None]:
        """Save the state if another process ends: it is that after the last complete step."""
        try:
            yield
        except ProcessLostError as error:
            raise ProcessLostError(f"{error} {self._save_by_one()}") from error

    @contextmanager
    def draws_undone_if_lost(self) -> Iterator[None]:
        """Take back the random numbers of a step during which another process ends."""
        before = self.state.random.state() if self._processes.size > 1 else []
        try:
            yield
        except ProcessLostError:
            self.state.random.set_state(before)
            raise

    def _restore(self, checkpoint: Checkpoint) -> bool:
        if (outcome := self._processes.from_first(checkpoint.read_finished)) is not None:
            self.state.load_outcome(outcome, checkpoint)
            return True
        if (progress := self._processes.from_first(checkpoint.read_progress)) is not None:
            self.state.load_progress(progress, checkpoint)
        return False

    def _begin_alike(self) -> None:
        """Begin with the weights and random numbers of the first process.

        In an earlier training the user's own module may have drawn random numbers for its rows, of
        which each process has another number.
        """
        if self._processes.size > 1:
            state = self.state
            self._processes.copy_from_first([*state.network.parameters(), *state.network.buffers()])
            state.random.set_state(self._processes.from_first(state.random.state))

    def _save_by_one(self) -> str:
        """Let one of the processes that are left save the state, and return how to resume."""
        if self._processes.elect("checkpoint"):
            self._save()
        progress = f"Stopped after {self.state.epoch} of {self._n_epochs} epochs."
        if self._checkpoint is None:
            return f"{progress} Nothing was saved; pass `checkpoint=` a file name to resume later."
        path = self._checkpoint.finished.path
        return f"{progress} Saved to {path}; the same call resumes from there."

    def _save(self) -> None:
        self.state.seconds = time.monotonic() - self.started
        if self._checkpoint is not None:
            self._checkpoint.save(self.state.progress())
