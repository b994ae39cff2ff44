"""How many threads EM uses: one for small problems, and what is faster at the moment for others.

On a machine whose cores are busy, threads wait for each other at the end of every sum: with a load
of three on two cores, EM on a million labels by two threads took up to eight times as long as by
one. A short sum, timed both ways, shows it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from annotrace.crowd.problem import CrowdProblem
from annotrace.progress import report_stage

# Below this many labels, one thread takes a few milliseconds per iteration.
FEW_LABELS = 200_000
# Several threads must be so much faster than one to be chosen.
MIN_GAIN = 0.9
N_TRIALS = 5
# Columns of a sum where whole matrices would have more cells than there are labels.
MAX_WIDTH = 8
_IN_USE = threading.Lock()


@contextmanager
def measured_threads(problem: CrowdProblem) -> Iterator[None]:
    """Let torch use as many threads inside the block as are worth it, at most as many as before.

    The number is that of the whole process: fits in other threads keep what is set.

    Parameters
    ----------
    problem : CrowdProblem
    """
    before = torch.get_num_threads()
    # A fit inside the block finds the lock taken, and keeps what was chosen.
    if before == 1 or not _IN_USE.acquire(blocking=False):
        yield
        return
    try:
        torch.set_num_threads(_choose(problem, before))
        yield
    finally:
        torch.set_num_threads(before)
        _IN_USE.release()


def _choose(problem: CrowdProblem, largest: int) -> int:
    if problem.table.n_labels < FEW_LABELS:
        return 1
    report_stage("Choosing threads, trial", 0, 1)
    add_up = _short_sum(problem)
    seconds = {1: 0.0, largest: 0.0}
    # In turn, so that both meet the same load.
    for _ in range(N_TRIALS):
        for number in seconds:
            torch.set_num_threads(number)
            start = time.perf_counter()
            add_up()
            seconds[number] += time.perf_counter() - start
    return largest if seconds[largest] < MIN_GAIN * seconds[1] else 1


def _short_sum(problem: CrowdProblem) -> Callable[[], Tensor]:
    """Return a sum over some labels as EM makes it: of matrices, unless these have more cells."""
    sample = problem.labels.head(FEW_LABELS)
    if math.prod(problem.shape) > problem.table.n_labels:
        width = min(problem.shape[1], MAX_WIDTH)
        values = torch.zeros(len(sample.row), width, dtype=problem.dtype)
        return partial(sample.sum_by_item, values)
    return partial(sample.sum_matrices, torch.zeros(problem.shape, dtype=problem.dtype))
