import copy

import pytest
import torch
from torch import nn

from annotrace.crowd import Confusion
from annotrace.training import Epoch, Randomness, Settings
from annotrace.training.state import start_training

CPU = torch.device("cpu")


def start(sparse=False, seed=0):
    torch.manual_seed(0)
    network = nn.ModuleList([nn.Linear(4, 3), Confusion(5, 3, sparse=sparse)])
    return start_training(network, Settings(lr=0.1), CPU, Randomness(seed, CPU))


def step(state):
    linear, layer = state.network
    state.network.zero_grad()
    rows = layer.log_likelihood(torch.tensor([1, 3]), torch.tensor([0, 2]))
    (linear(torch.ones(1, 4)).square().sum() + rows.sum()).backward()
    for optimizer in state.optimizers:
        optimizer.step()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_restored_state_continues_with_the_same_numbers(sparse):
    state = start(sparse)
    step(state)
    state.epoch, state.history = 1, [Epoch(1, 0.5, None, 2.0)]
    state.loss.fill_(0.25)
    saved = copy.deepcopy(state.to_dict())
    draw = torch.rand(3, generator=state.random.generator)
    restored = start(sparse, seed=5)
    restored.load(saved)
    assert torch.equal(torch.rand(3, generator=restored.random.generator), draw)
    assert (restored.epoch, restored.history, float(restored.loss)) == (1, state.history, 0.25)
    step(restored)
    step(state)
    weights = zip(restored.network.parameters(), state.network.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)


@pytest.mark.parametrize(("precision", "scaled"), [("float32", False), ("fp16", True)])
def test_only_fp16_scales_the_loss(precision, scaled):
    settings = Settings(precision=precision)
    state = start_training(nn.Linear(2, 2), settings, CPU, Randomness(0, CPU))
    assert state.scaler.is_enabled() is scaled
