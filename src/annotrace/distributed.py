"""The processes of a run: one by itself, or several that torchrun has started.

Every process executes the same program. What differs between them goes through the methods of
`Processes`, which do nothing in a process by itself. Therefore the code that uses them is the same
for one process and for several.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from annotrace.election import Election
from annotrace.errors import ProcessLostError

T = TypeVar("T")

TIMEOUT = timedelta(minutes=30)
"""How long a process waits for another one that is neither heard of nor known to have ended."""


class Processes:
    """A process by itself.

    Attributes
    ----------
    rank, size : int
        The number of this process, from 0, and how many there are.
    local_rank : int
        The number of this process on its machine.
    """

    rank, size, local_rank = 0, 1, 0

    @property
    def is_first(self) -> bool:
        """Whether this process reads, writes and prints what only one does."""
        return self.rank == 0

    def rows(self, n_rows: int) -> tuple[slice, float]:
        """Return the rows of a batch that this process computes, and their share of the batch.

        A process without rows computes the first one, with a share of 0, because it has to take
        part in what follows.
        """
        if self.rank >= n_rows:
            return slice(0, 1), 0.0
        return slice(self.rank, None, self.size), len(range(self.rank, n_rows, self.size)) / n_rows

    def part(self, n_rows: int) -> slice:
        """Return the consecutive rows of this process; all rows if there are too few to divide."""
        if not self.divides(n_rows):
            return slice(0, n_rows)
        return slice(n_rows * self.rank // self.size, n_rows * (self.rank + 1) // self.size)

    def divides(self, n_rows: int) -> bool:
        """Whether `part` divides these rows among several processes."""
        return 1 < self.size <= n_rows

    def add_up(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place, and return it."""
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether a flag is set in any process."""
        return flag

    def all_rows(self, rows: Tensor) -> Tensor:
        """Return the rows (n_rows, ...) of all processes, which may differ in number, in order."""
        return rows

    def rows_at_first(self, rows: Tensor) -> Tensor:
        """Return to the first process what `all_rows` returns; to others their own rows."""
        return rows

    def from_first(self, compute: Callable[[], T]) -> T:
        """Return to all processes what a function returns in the first one."""
        return compute()

    def hand_out(self, part: Callable[[int], T]) -> T:
        """Return what a function of the rank returns in the first process for this one."""
        return part(0)

    def collect(self, value: T) -> list[T]:
        """Return the values of all processes to the first one; an empty list to others."""
        return [value]

    def copy_from_first(self, tensors: list[Tensor]) -> None:
        """Overwrite tensors by those of the first process."""

    def leave(self) -> None:
        """End the communication; from then on each process is by itself, except in `elect`."""

    def elect(self, task: str) -> bool:
        """Return True in one of the processes that call this, in the first if it does so in time.

        A process that was not elected once is not elected again. This works after a process has
        died, with which all other methods would fail.
        """
        return True


class JoinedProcesses(Processes):
    """Several processes of `torchrun`, or of another launcher that sets the same variables.

    Parameters
    ----------
    store : Store
        That of the rendezvous, which survives the processes if torchrun holds it. That of torchrun
        has a prefix for each start, so that a restart does not find earlier elections.
    rank, size, local_rank : int
    """

    def __init__(self, store: Any, rank: int, size: int, local_rank: int) -> None:
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self._election = Election(store, rank, local_rank)

    def add_up(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place, and return it."""
        with _lost_as_error():
            dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether a flag is set in any process."""
        return bool(self.add_up(torch.tensor([float(flag)])))

    def all_rows(self, rows: Tensor) -> Tensor:
        """Return the rows (n_rows, ...) of all processes, which may differ in number, in order."""
        sizes = self._sizes(rows)
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        found = [torch.empty_like(padded) for _ in sizes]
        with _lost_as_error():
            dist.all_gather(found, padded)
        return torch.cat([each[:size] for each, size in zip(found, sizes, strict=True)])

    def rows_at_first(self, rows: Tensor) -> Tensor:
        """Return to the first process what `all_rows` returns; to others their own rows."""
        sizes = self._sizes(rows)
        if not self.is_first:
            with _lost_as_error():
                dist.send(rows.contiguous(), 0)
            return rows
        found = rows.new_empty(sum(sizes), *rows.shape[1:])
        own, *others = found.split(sizes)
        own.copy_(rows)
        with _lost_as_error():
            for rank, part in enumerate(others, start=1):
                dist.recv(part, rank)
        return found

    def from_first(self, compute: Callable[[], T]) -> T:
        """Return to all processes what a function returns in the first one."""
        box: list[Any] = [compute() if self.is_first else None]
        with _lost_as_error():
            dist.broadcast_object_list(box)
        found: T = box[0]
        return found

    def hand_out(self, part: Callable[[int], T]) -> T:
        """Return what a function of the rank returns in the first process for this one."""
        if not self.is_first:
            box: list[Any] = [None]
            with _lost_as_error():
                dist.recv_object_list(box, 0)
            found: T = box[0]
            return found
        for rank in range(1, self.size):
            made = [part(rank)]
            with _lost_as_error():
                dist.send_object_list(made, rank)
        return part(0)

    def collect(self, value: T) -> list[T]:
        """Return the values of all processes to the first one; an empty list to others."""
        found: list[Any] | None = [None] * self.size if self.is_first else None
        with _lost_as_error():
            dist.gather_object(value, found)
        return found or []

    def copy_from_first(self, tensors: list[Tensor]) -> None:
        """Overwrite tensors by those of the first process."""
        with _lost_as_error():
            for tensor in tensors:
                copy = tensor.detach().contiguous()
                dist.broadcast(copy, 0)
                tensor.detach().copy_(copy)

    def leave(self) -> None:
        """End the communication; from then on each process is by itself, except in `elect`."""
        global _current
        dist.destroy_process_group()
        _current = Processes()

    def elect(self, task: str) -> bool:
        """Return True in one of the processes that call this; in the first if it does so."""
        return self._election.elects(task)

    def _sizes(self, rows: Tensor) -> list[int]:
        """Return the number of rows of each process."""
        sizes = torch.zeros(self.size, dtype=torch.int64)
        sizes[self.rank] = len(rows)
        numbers: list[int] = self.add_up(sizes).tolist()
        return numbers


_current = Processes()


def current() -> Processes:
    """Return the processes of this run: this one by itself unless `joined` is in effect."""
    return _current


@contextmanager
def joined() -> Iterator[Processes]:
    """Join the processes that torchrun has started, if it has started more than one.

    Tensors in memory are exchanged by gloo, those on NVIDIA GPUs by NCCL.

    Raises
    ------
    ProcessLostError
        If they cannot reach each other, or the launcher does not say where they meet.
    """
    global _current
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield _current
        return
    _current = _join()
    try:
        yield _current
        if dist.is_initialized():
            _current.leave()
    finally:
        _current = Processes()


def _join() -> JoinedProcesses:
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        store, rank, size = next(rendezvous("env://"))
        dist.init_process_group(backend, timeout=TIMEOUT, store=store, rank=rank, world_size=size)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ProcessLostError(
            f"The processes of this run cannot reach each other ({reason}): start it again, with "
            "torchrun."
        ) from error
    return JoinedProcesses(store, rank, size, int(os.environ.get("LOCAL_RANK", rank)))


@contextmanager
def _lost_as_error() -> Iterator[None]:
    """Raise `ProcessLostError` where an operation fails because another process is lost."""
    try:
        yield
    except RuntimeError as error:
        is_silent = any(sign in str(error).lower() for sign in ("timed out", "timeout"))
        minutes = TIMEOUT // timedelta(minutes=1)
        what = f"has not answered for {minutes} minutes" if is_silent else "has ended"
        raise ProcessLostError(f"Another process of this run {what}.") from error
