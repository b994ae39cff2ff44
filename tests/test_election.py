"""Elections without a store; those with one are in `test_distributed.py`."""

import time

import pytest
import torch

from annotrace import election
from annotrace.election import Election


class DeadStore:
    """The store of a machine that has died."""

    def check(self, *given):
        raise torch.distributed.DistNetworkError("Connection reset by peer")

    add = check


class VanishedStore:
    """The store of a machine that has vanished from the network."""

    def check(self, *given):
        time.sleep(3600)

    add = check


@pytest.mark.parametrize("store", [DeadStore(), VanishedStore()])
@pytest.mark.parametrize(
    ("victims", "elected"), [([0], [1, 2]), ([0, 1], [2]), ([2, 3], [0, 1]), ([0, 2], [1])]
)
def test_some_process_is_elected_without_the_store(store, victims, elected, monkeypatch):
    monkeypatch.setattr(election, "PATIENCE", 0.01)
    left = {rank: Election(store, rank, rank % 2) for rank in range(4) if rank not in victims}
    assert [rank for rank, each in left.items() if each.elects("task")] == elected
