"""The fast step on the CPU: all but the recording itself, which here is a call to the step."""

import contextlib
import random
import signal

import numpy as np
import pytest
import torch
from crowds import blobs
from torch import nn

import annotrace as at
from annotrace.errors import TrainingInterrupted
from annotrace.methods.registry import METHODS
from annotrace.training import RowAdam, fast_step, loop
from annotrace.training.fast_step import (
    MAX_GRAPHS,
    WARM_UP,
    CudaRecorder,
    FastStep,
    hold_rates,
    recorder_for,
)


class CallAgain:
    """A recorder that keeps the operations and calls them again."""

    def __init__(self, fails=False, waits=()):
        self.recorded, self.aside_now, self.fails, self.waiting = 0, False, fails, list(waits)

    @contextlib.contextmanager
    def aside(self):
        self.aside_now = True
        yield
        self.aside_now = False

    @contextlib.contextmanager
    def waits(self):
        waits = []
        yield waits
        waits.extend(self.waiting)

    def record(self, operations):
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        self.recorded += 1
        return operations


class Log:
    """A step that notes what it is given, and may do something besides."""

    def __init__(self, also=lambda: None):
        self.seen, self.also = [], also

    def __call__(self, item, n_labels):
        self.seen.append((item.tolist(), n_labels))
        self.also()


def run(step, shapes):
    """Run a step on the items 0 .. n - 1 for each (n, labels)."""
    for place, (n_items, n_labels) in enumerate(shapes):
        step(torch.arange(n_items) + place, n_labels)


def test_every_step_is_taken_once_whether_recorded_or_not():
    log, recorder = Log(), CallAgain()
    step = FastStep(log, [], recorder)
    shapes = [(4, 8)] * 5 + [(2, 4)] + [(4, 8)] * 2 + [(2, 4)] * 2
    run(step, shapes)
    expected = [(list(range(k, k + n)), labels) for k, (n, labels) in enumerate(shapes)]
    assert log.seen == expected
    assert recorder.recorded == step.n_recorded == 2


def test_a_shape_is_recorded_when_it_comes_again_after_the_warm_up():
    recorder = CallAgain()
    step = FastStep(Log(), [], recorder)
    run(step, [(4, labels) for labels in range(WARM_UP)])
    assert recorder.recorded == 0
    run(step, [(4, 0)])
    assert recorder.recorded == 1
    run(step, [(4, 99)])
    assert recorder.recorded == 1


def test_so_many_shapes_are_recorded_and_no_more():
    log = Log()
    step = FastStep(log, [], CallAgain())
    run(step, [(1, labels) for labels in range(MAX_GRAPHS + 10)] * 3)
    assert step.n_recorded == MAX_GRAPHS
    assert len(log.seen) == 3 * (MAX_GRAPHS + 10)


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.rand(1), random.random, lambda: np.random.rand()],  # noqa: NPY002
)
def test_a_step_that_draws_on_the_host_is_not_recorded(draw):
    recorder = CallAgain()
    log = Log(draw)
    step = FastStep(log, [], recorder)
    run(step, [(4, 8)] * 6)
    assert step.refusal == "it draws random numbers on the host"
    assert recorder.recorded == 0
    assert len(log.seen) == 6


def test_a_step_that_waits_for_the_device_is_not_recorded():
    recorder = CallAgain(waits=["network.py:7"])
    step = FastStep(Log(), [], recorder)
    run(step, [(4, 8)] * 6)
    assert step.refusal == "it waits for the device (network.py:7)"
    assert recorder.recorded == 0


def test_a_recording_that_fails_is_not_tried_again():
    log = Log()
    step = FastStep(log, [], CallAgain(fails=True))
    run(step, [(4, 8)] * 6)
    assert step.refusal == "operation not permitted when stream is capturing"
    assert len(log.seen) == 6


def fitted(monkeypatch, name, recorder, **settings):
    """Fit a method to 240 items of one or two labels, with a recorder if one is given."""
    X, _, full, confusion = blobs()
    kept = (np.arange(full.n_labels) % 4) > 0
    columns = (column[kept] for column in (full.item, full.annotator, full.label))
    table = at.LabelTable.from_codes(*columns, n_items=len(X), n_annotators=6, n_classes=3)
    if name == "oracle":
        settings["confusion"] = confusion
    with monkeypatch.context() as patch:
        # Draws of the network are on the device that is recorded, which here is the host.
        patch.setattr(fast_step, "_randomness_of_the_host", lambda: ())
        if recorder is not None:
            patch.setattr(loop, "recorder_for", lambda *_, **__: recorder)
        quick = QUICK.get(name, {})
        return at.make(name, epochs=4, batch_size=16, random_state=3, **quick, **settings).fit(
            X, table
        )


QUICK = {
    "auto": {"restarts": 1, "rounds": 2},
    "crossfit": {"start": "votes", "rounds": 2},
    "trace": {"restarts": 1},
}


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_as_it_does_without(monkeypatch, name, schedule):
    recorder = CallAgain()
    plain = fitted(monkeypatch, name, None, schedule=schedule)
    fast = fitted(monkeypatch, name, recorder, schedule=schedule)
    assert recorder.recorded > 0
    for one, other in zip(plain.history_, fast.history_, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-4)
        assert (other.held_out is None) == (one.held_out is None)
        assert other.held_out is None or other.held_out == pytest.approx(one.held_out, rel=1e-4)
    np.testing.assert_allclose(fast.posterior_, plain.posterior_, atol=1e-4)


def test_fast_can_be_turned_off(monkeypatch):
    recorder = CallAgain()
    fitted(monkeypatch, "trace", recorder, fast=False)
    assert recorder.recorded == 0


def test_a_training_put_down_fast_may_be_taken_up_plain(monkeypatch, tmp_path):
    class Stop:
        def __call__(self, epoch):
            if epoch.number == 2 and not self.done:
                self.done = True
                signal.raise_signal(signal.SIGINT)

        done = False

    whole = fitted(monkeypatch, "trace", None, schedule="cosine")
    options = {"schedule": "cosine", "checkpoint": tmp_path / "c.pt", "callbacks": [Stop()]}
    with pytest.raises(TrainingInterrupted):
        fitted(monkeypatch, "trace", CallAgain(), **options)
    resumed = fitted(monkeypatch, "trace", None, fast=False, **options)
    np.testing.assert_allclose(resumed.posterior_, whole.posterior_, atol=1e-4)


def test_rates_are_tensors_that_the_optimiser_reads():
    weight = nn.Parameter(torch.zeros(3))
    adam = torch.optim.Adam([weight], lr=0.5, fused=True)
    hold_rates([adam])
    weight.grad = torch.ones(3)
    adam.step()
    torch.testing.assert_close(weight.detach(), torch.full((3,), -0.5))
    adam.param_groups[0]["lr"].fill_(0.0)
    adam.step()
    torch.testing.assert_close(weight.detach(), torch.full((3,), -0.5))


def test_what_cannot_be_recorded_is_known_beforehand():
    weight = nn.Parameter(torch.zeros(3, 2))
    adam, by_row = torch.optim.Adam([weight]), RowAdam([weight])
    gpu = torch.device("cuda")
    assert recorder_for(torch.device("cpu"), [adam], resident=True, scaled=False) is None
    assert recorder_for(gpu, [adam, by_row], resident=True, scaled=False) is None
    assert recorder_for(gpu, [adam], resident=False, scaled=False) is None
    assert recorder_for(gpu, [adam], resident=True, scaled=True) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_does_again_what_was_recorded():
    recorder = CudaRecorder(torch.device("cuda"))
    total = torch.zeros((), device="cuda")
    with recorder.aside():
        total.add_(1)
    again = recorder.record(lambda: total.add_(1))
    assert float(total) == 1
    again()
    again()
    assert float(total) == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_recording_that_fails_leaves_the_gpu_usable():
    recorder = CudaRecorder(torch.device("cuda"))
    with recorder.aside():
        torch.rand(3, device="cuda")
    with pytest.raises(RuntimeError):
        recorder.record(lambda: torch.rand(3, device="cuda").sum().item())
    assert float(torch.rand(3, device="cuda").sum()) > 0
    assert not torch.equal(torch.rand(3, device="cuda"), torch.rand(3, device="cuda"))
