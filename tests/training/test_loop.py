import errno
import os
import signal

import numpy as np
import pytest
import torch
from torch import nn

from annotrace.crowd import Confusion, crowd_nll
from annotrace.data import ArraySource
from annotrace.errors import DivergenceError, TrainingInterrupted
from annotrace.labels import LabelTable
from annotrace.training import (
    CheckpointSeries,
    CrowdData,
    Randomness,
    Settings,
    check_finite,
    interruptible,
    train,
)

N_ITEMS, N_ANNOTATORS, N_CLASSES = 40, 5, 3
SETTINGS = Settings(epochs=4, batch_size=16, lr=1e-2, schedule="cosine", seed=3)


class Crowd:
    """A small training: a network with dropout, a confusion layer, data, and the batch loss."""

    def __init__(self, sparse=False):
        rng = np.random.default_rng(0)
        item = np.repeat(np.arange(N_ITEMS), 2)
        table = LabelTable.from_codes(
            item,
            rng.integers(N_ANNOTATORS, size=len(item)),
            item % N_CLASSES,
            n_items=N_ITEMS,
            n_annotators=N_ANNOTATORS,
            n_classes=N_CLASSES,
        )
        X = rng.normal(size=(N_ITEMS, 4)) + np.eye(3, 4)[np.arange(N_ITEMS) % 3]
        cpu = torch.device("cpu")
        self.data = CrowdData(ArraySource(X), table, cpu, Randomness(7, cpu, lends=True))
        torch.manual_seed(0)
        classifier = nn.Sequential(
            nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, N_CLASSES)
        )
        layer = Confusion(N_ANNOTATORS, N_CLASSES, sparse=sparse)
        self.network = nn.ModuleDict({"classifier": classifier, "layer": layer})
        self.batches = 0

    def objective(self, batch):
        self.batches += 1
        logits = self.network["classifier"](batch.inputs)
        return crowd_nll(logits, self.network["layer"], batch.row, batch.annotator, batch.label)

    def train(self, settings=SETTINGS, objective=None, checkpoint=None, **options):
        items = torch.arange(N_ITEMS)
        objective = objective or self.objective
        options["checkpoint"] = CheckpointSeries(checkpoint).next("crowd", settings.seed)
        return train(self.network, objective, self.data, items, settings, **options)

    def weights(self):
        return {name: value.clone() for name, value in self.network.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("sparse", [False, True])
def test_two_runs_with_one_seed_are_bitwise_equal(sparse):
    one, other = Crowd(sparse), Crowd(sparse)
    before, histories = one.weights(), []
    for crowd in (one, other):
        histories.append(crowd.train())
        torch.rand(5)
    assert same(one.weights(), other.weights())
    assert [e.loss for e in histories[0]] == [e.loss for e in histories[1]]
    assert not same(before, one.weights())


def test_the_weights_of_the_best_epoch_are_kept():
    crowd, seen = Crowd(), []
    scores = iter([3.0, 1.0, 2.0, 4.0])

    def score():
        seen.append(crowd.weights())
        return next(scores)

    history = crowd.train(score=score)
    assert [epoch.held_out for epoch in history] == [3.0, 1.0, 2.0, 4.0]
    assert [epoch.number for epoch in history] == [1, 2, 3, 4]
    assert same(crowd.weights(), seen[1])
    assert not crowd.network.training


def test_a_last_batch_of_one_row_is_merged_with_the_previous_one():
    crowd, sizes = Crowd(), []

    def objective(batch):
        sizes.append(len(batch.inputs))
        return crowd.objective(batch)

    size = N_ITEMS - 1
    crowd.train(Settings(epochs=1, batch_size=size), objective=objective)
    crowd.train(Settings(epochs=1, batch_size=size - 1), objective=objective)
    crowd.train(Settings(epochs=1, batch_size=1), objective=objective)
    assert sizes == [N_ITEMS, size - 1, 2] + [1] * N_ITEMS


def test_patience_counts_from_the_best_epoch():
    scores = iter([3.0, 1.0, 2.0, 1.5, 0.1])
    settings = Settings(epochs=5, batch_size=16, patience=2)
    assert len(Crowd().train(settings, score=lambda: next(scores))) == 4


def test_a_callback_stops_the_training():
    seen = []

    def stop_after_two(epoch):
        seen.append(epoch.number)
        return epoch.number == 2

    assert len(Crowd().train(callbacks=[stop_after_two])) == 2
    assert seen == [1, 2]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stop_at", [1, 3, 5])
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path, sparse, stop_at):
    scores = [1.0, 0.5, 0.7, 0.6]
    whole = Crowd(sparse)
    expected = whole.train(score=iter(scores).__next__)
    crowd, checkpoint = Crowd(sparse), tmp_path / "run" / "checkpoint.bin"

    def interrupted(batch):
        if crowd.batches == stop_at - 1:
            os.kill(os.getpid(), signal.SIGINT)
        return crowd.objective(batch)

    handler = signal.getsignal(signal.SIGINT)
    left = iter(scores)
    with pytest.raises(TrainingInterrupted, match=r"the same call resumes from there"):
        crowd.train(objective=interrupted, checkpoint=checkpoint, score=left.__next__)
    assert signal.getsignal(signal.SIGINT) is handler
    assert crowd.batches == stop_at
    again = Crowd(sparse)
    torch.manual_seed(99)
    history = again.train(checkpoint=checkpoint, score=left.__next__)
    assert same(whole.weights(), again.weights())
    assert [epoch.loss for epoch in history] == [epoch.loss for epoch in expected]
    repeated = Crowd(sparse)
    assert repeated.train(checkpoint=checkpoint) == history
    assert repeated.batches == 0
    assert same(whole.weights(), repeated.weights())


def test_a_training_that_is_stopped_when_its_patience_ends_does_not_continue(tmp_path):
    settings = Settings(epochs=5, batch_size=16, patience=2)
    path, scores = tmp_path / "checkpoint.bin", iter([3.0, 4.0, 4.0, 1.0, 1.0])

    def interrupted(epoch):
        if epoch.number == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        Crowd().train(settings, checkpoint=path, score=scores.__next__, callbacks=[interrupted])
    assert len(Crowd().train(settings, checkpoint=path, score=scores.__next__)) == 3


def test_ctrl_c_without_a_checkpoint_names_the_remedy():
    crowd = Crowd()

    def interrupted(batch):
        signal.raise_signal(signal.SIGINT)
        return crowd.objective(batch)

    with pytest.raises(TrainingInterrupted, match=r"pass `checkpoint=` a file"):
        crowd.train(objective=interrupted)


def test_a_numpy_score_survives_a_checkpoint(tmp_path):
    crowd, path = Crowd(), tmp_path / "c.bin"

    def interrupted(batch):
        if crowd.batches == 4:
            signal.raise_signal(signal.SIGINT)
        return crowd.objective(batch)

    with pytest.raises(TrainingInterrupted):
        crowd.train(objective=interrupted, checkpoint=path, score=lambda: np.float64(1.0))
    assert len(Crowd().train(checkpoint=path, score=lambda: np.float64(1.0))) == 4


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains(precision, sparse):
    crowd = Crowd(sparse)
    before = crowd.weights()
    history = crowd.train(Settings(epochs=12, batch_size=16, lr=1e-2, precision=precision))
    assert history[-1].loss < history[0].loss
    assert all(value.isfinite().all() for value in crowd.weights().values())
    assert not torch.equal(before["layer.weight"], crowd.network["layer"].weight)


def test_a_nan_loss_raises_with_the_remedy():
    crowd = Crowd()
    with pytest.raises(DivergenceError, match="The loss is nan in epoch 1: lower `lr`"):
        crowd.train(objective=lambda batch: crowd.objective(batch) * float("nan"))


def test_ctrl_c_after_the_last_epoch_is_not_lost(tmp_path):
    crowd, path = Crowd(), tmp_path / "checkpoint.bin"

    def interrupted(epoch):
        if epoch.number == SETTINGS.epochs:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        crowd.train(callbacks=[interrupted], checkpoint=path)
    resumed = Crowd()
    assert len(resumed.train(checkpoint=path)) == SETTINGS.epochs
    assert same(resumed.weights(), crowd.weights())


def test_logits_that_are_not_finite_raise_with_the_row():
    logits = torch.zeros(5, 3)
    assert check_finite(logits) is logits
    logits[2:4, 1] = float("nan")
    with pytest.raises(DivergenceError, match="for 2 items, the first with row index 2: lower"):
        check_finite(logits)


def test_ctrl_c_in_a_long_score_stops_at_once_and_resumes_before_it(tmp_path):
    whole = Crowd()
    whole.train(score=lambda: 1.0)
    crowd, path, n_done = Crowd(), tmp_path / "c.bin", []

    def score():
        if len(n_done) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        n_done.append(1)
        return 1.0

    with pytest.raises(TrainingInterrupted, match="Stopped after 1 of 4 epochs"):
        crowd.train(score=score, checkpoint=path)
    assert len(n_done) == 1
    resumed = Crowd()
    assert len(resumed.train(score=lambda: 1.0, checkpoint=path)) == 4
    assert same(resumed.weights(), whole.weights())


@pytest.mark.parametrize("when", ["progress", "end"])
def test_a_full_disk_is_one_error_that_keeps_the_previous_checkpoint(tmp_path, monkeypatch, when):
    path = tmp_path / "c.bin"

    def interrupted(epoch):
        if epoch.number == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        Crowd().train(callbacks=[interrupted], checkpoint=path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(interruptible, "CHECKPOINT_SECONDS", 0 if when == "progress" else 60)
    with pytest.raises(OSError, match="No space left") as raised:
        Crowd().train(checkpoint=path)
    assert raised.value.filename == str(path) + (".training" if when == "progress" else "")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_killed_training_resumes_from_the_last_minute_within_an_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(interruptible, "CHECKPOINT_SECONDS", 0)
    whole, killed, resumed = Crowd(), Crowd(), Crowd()
    whole.train()

    def die_in_the_fifth_of_three_steps_per_epoch(batch):
        if killed.batches == 4:
            raise MemoryError
        return killed.objective(batch)

    with pytest.raises(MemoryError):
        killed.train(
            objective=die_in_the_fifth_of_three_steps_per_epoch, checkpoint=tmp_path / "c.bin"
        )
    resumed.train(checkpoint=tmp_path / "c.bin")
    assert resumed.batches == whole.batches - 4
    for own, expected in zip(resumed.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(own, expected)
