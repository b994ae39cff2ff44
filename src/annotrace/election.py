"""Which one of several processes does a task, also after some of them have died."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Thread
from typing import Any

PATIENCE = 3.0
"""Seconds for which processes wait for the first one to take a task that one of them has to do."""


class Election:
    """One process in the elections of a run.

    Parameters
    ----------
    store : Store
        Of torch, in which all processes find what others have written.
    rank, local_rank : int
        The number of this process, and its number on its machine.
    """

    def __init__(self, store: Any, rank: int, local_rank: int) -> None:
        self._store, self._rank, self._local_rank = store, rank, local_rank
        self._may_be_elected = True

    def elects(self, task: str) -> bool:
        """Return True in one of the processes that call this, in the first if it does so in time.

        A process that was not elected once is not elected again.
        """
        self._may_be_elected = self._may_be_elected and self._elects(task)
        return self._may_be_elected

    def _elects(self, task: str) -> bool:
        answer: list[bool] = []
        # A store on a machine that has vanished never answers.
        asking = Thread(target=self._ask_store, args=(task, answer), daemon=True)
        asking.start()
        asking.join(3 * PATIENCE)
        # Without an answer several processes may do the task, on each machine one.
        return answer[0] if answer else self._rank <= 1 or self._local_rank == 0

    def _ask_store(self, task: str, answer: list[bool]) -> None:
        """Append whether this process is elected, unless the store has died.

        It dies with the first process if there is no torchrun, or with another machine's torchrun.
        """
        key, deadline = f"annotrace/{task}", time.monotonic() + PATIENCE
        with suppress(RuntimeError):
            while self._rank and time.monotonic() < deadline:
                if self._store.check([key]):
                    answer.append(False)
                    return
                time.sleep(0.05)
            answer.append(self._store.add(key, 1) == 1)
