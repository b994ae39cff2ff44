"""Graphed steps on the CPU, where a capture is simulated by calling the step again."""

import contextlib
import random
import signal

import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.errors import TrainingInterrupted
from annotrace.methods import Recipe
from annotrace.methods.registry import METHODS
from annotrace.training import cuda_graphs, loop
from annotrace.training.cuda_graphs import (
    MAX_GRAPHS,
    WARM_UP_STEPS,
    CudaCapturer,
    GraphedStep,
    make_capturer,
)


class CallAgain:
    """A capturer that stores the operations and calls them again."""

    def __init__(self, fails=False, waits=()):
        self.captured, self.fails, self.waits = 0, fails, list(waits)

    @contextlib.contextmanager
    def warm_up(self):
        yield

    @contextlib.contextmanager
    def synchronizations(self):
        places = []
        yield places
        places.extend(self.waits)

    def capture(self, operations):
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        self.captured += 1
        return operations


class Log:
    """A step that records its arguments, and may do something else besides."""

    def __init__(self, also=lambda: None):
        self.seen, self.also = [], also

    def __call__(self, item, n_labels):
        self.seen.append((item.tolist(), n_labels))
        self.also()


def run(step, shapes):
    """Run a step on the items 0 .. n - 1 for each (n, labels)."""
    for place, (n_items, n_labels) in enumerate(shapes):
        step(torch.arange(n_items) + place, n_labels)


def test_every_step_runs_once_captured_or_not():
    log, capturer = Log(), CallAgain()
    step = GraphedStep(log, [], capturer)
    shapes = [(4, 8)] * 5 + [(2, 4)] + [(4, 8)] * 2 + [(2, 4)] * 2
    run(step, shapes)
    expected = [(list(range(k, k + n)), labels) for k, (n, labels) in enumerate(shapes)]
    assert log.seen == expected
    assert capturer.captured == step.n_graphs == 2


def test_a_shape_is_captured_when_it_recurs_after_the_warm_up():
    capturer = CallAgain()
    step = GraphedStep(Log(), [], capturer)
    run(step, [(4, labels) for labels in range(WARM_UP_STEPS)])
    assert capturer.captured == 0
    run(step, [(4, 0)])
    assert capturer.captured == 1
    run(step, [(4, 99)])
    assert capturer.captured == 1


def test_the_number_of_graphs_is_limited():
    log = Log()
    step = GraphedStep(log, [], CallAgain())
    run(step, [(1, labels) for labels in range(MAX_GRAPHS + 10)] * 3)
    assert step.n_graphs == MAX_GRAPHS
    assert len(log.seen) == 3 * (MAX_GRAPHS + 10)


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.rand(1), random.random, lambda: np.random.rand()],  # noqa: NPY002
)
def test_a_step_that_draws_on_the_host_is_not_captured(draw):
    capturer = CallAgain()
    log = Log(draw)
    step = GraphedStep(log, [], capturer)
    run(step, [(4, 8)] * 6)
    assert step.eager_reason == "it draws random numbers on the host"
    assert capturer.captured == 0
    assert len(log.seen) == 6


def test_a_step_that_waits_for_the_device_is_not_captured():
    capturer = CallAgain(waits=["network.py:7"])
    step = GraphedStep(Log(), [], capturer)
    run(step, [(4, 8)] * 6)
    assert step.eager_reason == "it waits for the device (network.py:7)"
    assert capturer.captured == 0


def test_a_failed_capture_is_not_retried():
    log = Log()
    step = GraphedStep(log, [], CallAgain(fails=True))
    run(step, [(4, 8)] * 6)
    assert step.eager_reason == "operation not permitted when stream is capturing"
    assert len(log.seen) == 6


def fitted(monkeypatch, name, capturer, **settings):
    """Fit a method to 240 items of one or two labels, with a capturer if given."""
    X, _, full, confusion = blobs()
    kept = (np.arange(full.n_labels) % 4) > 0
    columns = (column[kept] for column in (full.item, full.annotator, full.label))
    table = at.LabelTable.from_codes(*columns, n_items=len(X), n_annotators=6, n_classes=3)
    if name == "oracle":
        settings["confusion"] = confusion
    with monkeypatch.context() as patch:
        # The device whose draws are captured is the host here.
        patch.setattr(cuda_graphs, "_host_rng_states", lambda: ())
        if capturer is not None:
            patch.setattr(loop, "make_capturer", lambda *_, **__: capturer)
        quick = QUICK.get(name, {})
        return at.make(name, epochs=4, batch_size=16, random_state=3, **quick, **settings).fit(
            X, table
        )


QUICK = {
    "auto": {"n_iter": 1},
    "crossfit": {"init": "votes", "n_iter": 2},
    "item-dependent": {"init": "votes", "n_iter": 2},
    "trace": {"recipe": Recipe(n_init=1)},
}


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_learns_the_same_with_and_without_graphs(monkeypatch, name, schedule):
    capturer = CallAgain()
    plain = fitted(monkeypatch, name, None, schedule=schedule)
    graphed = fitted(monkeypatch, name, capturer, schedule=schedule)
    assert capturer.captured > 0
    for one, other in zip(plain.history_, graphed.history_, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-4)
        assert (other.held_out is None) == (one.held_out is None)
        assert other.held_out is None or other.held_out == pytest.approx(one.held_out, rel=1e-4)
    np.testing.assert_allclose(graphed.posterior_, plain.posterior_, atol=1e-4)


def test_graphs_can_be_disabled(monkeypatch):
    capturer = CallAgain()
    fitted(monkeypatch, "trace", capturer, cuda_graphs=False)
    assert capturer.captured == 0


def test_a_training_interrupted_with_graphs_resumes_without(monkeypatch, tmp_path):
    class Stop:
        def __call__(self, epoch):
            if epoch.number == 2 and not self.done:
                self.done = True
                signal.raise_signal(signal.SIGINT)

        done = False

    whole = fitted(monkeypatch, "trace", None, schedule="cosine")
    options = {"schedule": "cosine", "checkpoint": tmp_path / "c.bin", "callbacks": [Stop()]}
    with pytest.raises(TrainingInterrupted):
        fitted(monkeypatch, "trace", CallAgain(), **options)
    resumed = fitted(monkeypatch, "trace", None, cuda_graphs=False, **options)
    np.testing.assert_allclose(resumed.posterior_, whole.posterior_, atol=1e-4)


def test_trainings_that_cannot_be_captured_get_no_capturer():
    gpu = torch.device("cuda")
    assert make_capturer(torch.device("cpu"), resident=True, scaled=False) is None
    assert make_capturer(gpu, resident=False, scaled=False) is None
    assert make_capturer(gpu, resident=True, scaled=True) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_replays_what_was_captured():
    capturer = CudaCapturer(torch.device("cuda"))
    total = torch.zeros((), device="cuda")
    with capturer.warm_up():
        total.add_(1)
    again = capturer.capture(lambda: total.add_(1))
    assert float(total) == 1
    again()
    again()
    assert float(total) == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_failed_capture_leaves_the_gpu_usable():
    capturer = CudaCapturer(torch.device("cuda"))
    with capturer.warm_up():
        torch.rand(3, device="cuda")
    with pytest.raises(RuntimeError):
        capturer.capture(lambda: torch.rand(3, device="cuda").sum().item())
    assert float(torch.rand(3, device="cuda").sum()) > 0
    assert not torch.equal(torch.rand(3, device="cuda"), torch.rand(3, device="cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_draws_new_numbers_from_the_generator_of_the_fit():
    gpu = torch.device("cuda")
    generator, same = (torch.Generator(gpu).manual_seed(3) for _ in range(2))
    drawn, before = torch.zeros(4, device=gpu), torch.cuda.get_rng_state()
    capturer = CudaCapturer(gpu, generator)
    with capturer.warm_up():
        drawn.uniform_(generator=generator)
    again = capturer.capture(lambda: drawn.uniform_(generator=generator))
    for _ in range(3):
        assert torch.equal(drawn, torch.rand(4, device=gpu, generator=same))
        again()
    assert torch.equal(torch.cuda.get_rng_state(), before)
