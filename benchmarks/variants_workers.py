"""Jobs in worker processes, which end on time and survive the crash of one of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

Work = Callable[[Any], Any]


class WorkerDiedError(Exception):
    """A worker process ended during a job."""


class Worker:
    """A process that does one job after another.

    Attributes
    ----------
    job : object
        The job in progress.
    connection : Connection
        Readable when the job is done or the process has ended.
    """

    def __init__(self, work: Work) -> None:
        # Forked processes would inherit the threads of torch.
        context = get_context("spawn")
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(work, other), daemon=True)
        self._process.start()
        other.close()
        self.job: Any = None

    def start(self, job: Any) -> None:
        """Begin a job."""
        self.job = job
        # If the process has ended, `result` says so.
        with suppress(BrokenPipeError):
            self.connection.send(job)

    def result(self) -> Any:
        """Return the result of the job; raise WorkerDiedError if the process has ended."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise WorkerDiedError(f"exit code {self._process.exitcode}") from None

    def stop(self) -> None:
        """End the process, and abandon the job in progress."""
        self._process.terminate()
        self._process.join()
        self.connection.close()


def _serve(work: Work, connection: Connection) -> None:
    while True:
        connection.send(work(connection.recv()))


def run_jobs(
    work: Work, jobs: Iterable[Any], n_workers: int, seconds: float | None = None
) -> Iterator[tuple[Any, Any]]:
    """Do jobs in order, several at a time, and yield each with its result when it is done.

    Parameters
    ----------
    work : callable
        From a job to its result, both picklable; must be a function of a module.
    jobs : iterable
    n_workers : int
    seconds : float, optional
        After which no job is begun and those in progress are abandoned.

    Yields
    ------
    job : object
    result : object
        A WorkerDiedError if the process ended during the job; a new one does the next.
    """
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    waiting, busy = deque(jobs), dict[Connection, Worker]()
    idle = [Worker(work) for _ in range(min(n_workers, len(waiting)))]
    try:
        while waiting or busy:
            while waiting and idle:
                worker = idle.pop()
                worker.start(waiting.popleft())
                busy[worker.connection] = worker
            for connection in _ready(busy, deadline):
                worker = busy.pop(connection)
                try:
                    result = worker.result()
                    idle.append(worker)
                except WorkerDiedError as error:
                    result = error
                    worker.stop()
                    idle.append(Worker(work))
                yield worker.job, result
            if time.monotonic() >= deadline:
                return
    finally:
        for worker in [*idle, *busy.values()]:
            worker.stop()


def _ready(busy: Iterable[Connection], deadline: float) -> list[Any]:
    left = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
    return wait(list(busy), left)
