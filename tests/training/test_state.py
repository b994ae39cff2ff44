import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from annotrace.crowd import Confusion
from annotrace.errors import RunError
from annotrace.training import Epoch, Randomness, Settings
from annotrace.training.checkpoint import Checkpoint
from annotrace.training.state import start_training

CPU = torch.device("cpu")
CHECKPOINT = Checkpoint(Path("c.bin"), 0)


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
    saved = copy.deepcopy(state.progress())
    draw = torch.rand(3, generator=state.random.generator)
    restored = start(sparse, seed=5)
    restored.load_progress(saved, CHECKPOINT)
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


def trained(sparse=False):
    """A state with moments, a history and a best epoch."""
    state = start(sparse)
    step(state)
    state.epoch, state.history = 1, [Epoch(1, 0.5, 0.7, 2.0)]
    state.best_score, state.best_weights = 0.7, copy.deepcopy(state.network.state_dict())
    return state


@pytest.mark.parametrize("sparse", [False, True])
def test_a_finished_training_keeps_only_its_weights_history_and_random_state(sparse):
    outcome = trained(sparse).outcome()
    parts = {name.partition(".")[0] for name in outcome.tensors}
    assert parts == {"network", "random", "history"}
    restored = start(sparse)
    restored.load_outcome(outcome, CHECKPOINT)
    assert restored.history == [Epoch(1, 0.5, 0.7, 2.0)]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("network.0.weight", lambda tensor: tensor[:2]),
        ("network.0.weight", lambda tensor: tensor.double()),
        ("network.0.weight", lambda tensor: tensor * float("nan")),
        ("network.0.weight", None),
        ("network.more", lambda _: torch.zeros(2)),
        ("best.0.bias", lambda tensor: tensor / 0),
        ("best_score", lambda tensor: tensor + 1),
        ("best_score", lambda tensor: torch.zeros(3)),
        ("optimizer0.0.exp_avg", lambda tensor: tensor[:1]),
        ("optimizer0.0.exp_avg", None),
        ("optimizer0.0.step", lambda tensor: tensor * float("inf")),
        ("optimizer0.99.step", lambda _: torch.tensor(1.0)),
        ("optimizer0.x.step", lambda _: torch.tensor(1.0)),
        ("random.0", lambda tensor: tensor[:100]),
        ("random.0", lambda tensor: tensor.float()),
        ("random.0", None),
        ("history", lambda tensor: tensor[:, :4]),
        ("history", lambda tensor: tensor.repeat(2, 1)),
        ("history", None),
        ("loss", lambda tensor: torch.zeros(2)),
        ("loss", None),
    ],
)
def test_tensors_that_do_not_fit_are_one_error(name, change):
    record = copy.deepcopy(trained().progress())
    if change is None:
        del record.tensors[name]
    else:
        record.tensors[name] = change(record.tensors.get(name))
    with pytest.raises(RunError, match="is damaged"):
        start().load_progress(record, CHECKPOINT)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 2},
        {"epoch": 1.0},
        {"epoch": True},
        {"batch": -1},
        {"batch": None},
        {"seconds": "1"},
        {"scaler": {"scale": 1.0}},
        {"scaler": []},
    ],
)
def test_values_that_do_not_fit_are_one_error(change):
    record = trained().progress()
    with pytest.raises(RunError, match="is damaged"):
        start().load_progress(record._replace(values=record.values | change), CHECKPOINT)
