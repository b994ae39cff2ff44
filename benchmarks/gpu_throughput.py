"""Labels per second of training with 100,000 annotators on one GPU, and its step to a plain one.

    python benchmarks/gpu_throughput.py [--out RESULTS.jsonl] [--seconds 28]

One million items of 64 features, five million labels, ten classes, all on the GPU. `crowd` is the
trace-regularised loss as `TraceRegularized` trains it by default (joint likelihood, no mixup);
`plain` is cross-entropy with the true classes, by the same loop, network and batches. `bare` is
`plain` on items without labels, which the batches need not look up. "mlp" is the network of that
name (64, 128, 10), "wide" has two hidden layers of 1,024.

Steps are timed inside `train`, the GPU synchronised at both ends of an epoch's steps; labels per
second count whole epochs, with the shuffling between them. The median over epochs counts, without
the first two, in which graphs are recorded. A measurement that fails is a line with the error, and
after --seconds no further one begins.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import statistics
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd import trace_regularized_nll
from annotrace.data import ArraySource
from annotrace.labels import LabelTable
from annotrace.methods.trace_regularized import make_annotators
from annotrace.networks import build_backbone, mlp
from annotrace.training import Batch, CrowdData, Settings, loop, train
from annotrace.training.cuda_graphs import GraphedStep

CLASSES, FEATURES, LABELS_PER_ITEM, LAMBDA = 10, 64, 5, 0.01
EPOCHS = 5
MAX_STEPS = {True: 900, False: 40}
"""Steps of an epoch with and without CUDA graphs: enough to time, few enough to end."""


class Run(NamedTuple):
    """One training to measure."""

    loss: str
    network: str
    batch: int
    graphs: bool

    @property
    def name(self) -> str:
        """How the run is printed."""
        return f"{self.loss} {self.network} {self.batch:,} {'graphs' if self.graphs else 'eager'}"


BOTH = ("plain", "crowd")
FIRST = [
    *(Run(loss, "mlp", batch, True) for batch in (8192, 1024, 65536, 64) for loss in BOTH),
    *(Run(loss, "mlp", batch, False) for batch in (1024, 8192) for loss in BOTH),
]
PROFILED = [Run("crowd", "mlp", batch, True) for batch in (1024, 8192, 65536)]
THEN = [
    *(Run(loss, "wide", batch, True) for batch in (1024, 8192) for loss in BOTH),
    *(Run("bare", "mlp", batch, True) for batch in (1024, 8192)),
    *(Run(loss, "mlp", 65536, False) for loss in BOTH),
]


class Timed:
    """A training step that measures the steps of each epoch, on the way into `train`."""

    made: Timed

    def __init__(self, step: Callable[[Tensor, int], None], n_steps: int) -> None:
        self.step, self.n_steps, self.done, self.seconds = step, n_steps, 0, list[float]()
        self.last: tuple[Tensor, int]
        Timed.made = self

    def __call__(self, item: Tensor, n_labels: int) -> None:
        """Take a step; the first and the last of an epoch wait for the GPU."""
        if self.done % self.n_steps == 0:
            synchronize()
            self.start = time.perf_counter()
        self.step(item, n_labels)
        self.last = item, n_labels
        self.done += 1
        if self.done % self.n_steps == 0:
            synchronize()
            self.seconds.append((time.perf_counter() - self.start) / self.n_steps)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Crowd:
    """Random items, of which features tell the class, and labels by annotators of any skill."""

    def __init__(self, n_items: int, n_annotators: int, device: torch.device) -> None:
        rng = np.random.default_rng(0)
        truth = rng.integers(CLASSES, size=n_items, dtype=np.int32)
        X = rng.standard_normal((n_items, FEATURES), dtype=np.float32)
        X += rng.standard_normal((CLASSES, FEATURES), dtype=np.float32)[truth] / 2
        item = np.repeat(np.arange(n_items, dtype=np.int32), LABELS_PER_ITEM)
        annotator = rng.integers(n_annotators, size=len(item), dtype=np.int32)
        skill = rng.uniform(0.2, 0.9, n_annotators).astype(np.float32)
        correct = rng.random(len(item), dtype=np.float32) < skill[annotator]
        wrong = rng.integers(CLASSES, size=len(item), dtype=np.int32)
        label = np.where(correct, truth[item], wrong)
        sizes = {"n_items": n_items, "n_annotators": n_annotators, "n_classes": CLASSES}
        self.table = LabelTable.from_codes(item, annotator, label, **sizes)
        self.data = CrowdData(ArraySource(X), self.table, device)
        self.bare = CrowdData.unlabelled(ArraySource(X), self.table, device)
        self.truth = torch.from_numpy(truth).long().to(device)
        self.sample = torch.from_numpy(X[:10_000])

    def network(self, name: str) -> nn.Module:
        """Return a new network from stored rows to logits."""
        torch.manual_seed(0)
        own = mlp(FEATURES, CLASSES, (1024, 1024)) if name == "wide" else name
        return build_backbone(own, self.sample, CLASSES).to(self.data.device)

    def accuracy(self, network: nn.Module) -> float:
        """Return how often the classifier finds the true class of the first items."""
        with torch.no_grad():
            items = torch.arange(min(100_000, len(self.truth)), device=self.truth.device)
            found = network(self.data.inputs(items)).argmax(1)
        return float((found == self.truth[items]).float().mean())

    def learn(self, run: Run) -> dict[str, Any]:
        """Train by the library's loop, and return what was measured."""
        network, data = self.network(run.network), self.bare if run.loss == "bare" else self.data
        n_items = len(self.truth)
        n_steps = min(max(n_items // run.batch, 1), MAX_STEPS[run.graphs])
        items = torch.randperm(n_items)[: n_steps * run.batch].to(data.device)
        model = make_annotators(
            self.table,
            n_items,
            run.batch,
            structure="full",
            parametrization="softplus",
            diagonal=0.7,
            lr_scale=30.0,
        ).to(data.device)

        def plain_loss(batch: Batch) -> Tensor:
            return F.cross_entropy(network(batch.inputs), self.truth[batch.item])

        def crowd_loss(batch: Batch) -> Tensor:
            labels = (batch.row, batch.annotator, batch.label)
            logits = network(batch.inputs)
            return trace_regularized_nll(logits, model, *labels, LAMBDA, joint=True)

        crowd = run.loss == "crowd"
        modules = {"network": network, "annotators": model} if crowd else {"network": network}
        settings = Settings(epochs=EPOCHS, batch_size=run.batch, cuda_graphs=run.graphs)
        made = loop._make_step
        loop._make_step = lambda *given: Timed(made(*given), n_steps)
        try:
            objective = crowd_loss if crowd else plain_loss
            history = train(nn.ModuleDict(modules), objective, data, items, settings)
        finally:
            loop._make_step = made
        ends = [epoch.seconds for epoch in history]
        epoch = statistics.median(after - before for before, after in pairwise(ends[1:]))
        step = Timed.made.step
        return {
            "step_ms": 1e3 * statistics.median(Timed.made.seconds[2:]),
            "fastest_ms": 1e3 * min(Timed.made.seconds[2:]),
            "labels_per_second": len(items) * LABELS_PER_ITEM / epoch,
            "steps_per_epoch": n_steps,
            "sparse": getattr(model, "sparse", False) if crowd else None,
            "recorded": step.n_graphs if isinstance(step, GraphedStep) else 0,
            "eager_reason": step.eager_reason if isinstance(step, GraphedStep) else None,
            "accuracy": self.accuracy(network),
            "training_loss": history[-1].loss,
        }


class Report:
    """Prints and writes one line per measurement."""

    def __init__(self, out: Path | None, about: dict[str, Any]) -> None:
        self.out, self.about, self.start = out, about, time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def line(self, **row: Any) -> None:
        """Print and write a measurement."""
        row = {"experiment": "gpu_throughput", **row, "spent": self.spent, **self.about}
        text = json.dumps({k: _rounded(v) for k, v in row.items()})
        print(text, flush=True)
        if self.out is not None:
            with self.out.open("a") as file:
                file.write(text + "\n")


def _rounded(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def measure(report: Report, crowd: Crowd, run: Run) -> dict[str, Any]:
    """Measure a run; an error is a line of its own."""
    try:
        found = crowd.learn(run)
    except Exception as error:
        traceback.print_exc(limit=-6)
        found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    report.line(section="speed", case=run.name, **run._asdict(), **found)
    gc.collect()
    return found


def show_profile(report: Report, crowd: Crowd, run: Run) -> None:
    """Print the kernels of a step that take longest, and count them all."""
    from torch.profiler import ProfilerActivity, profile

    try:
        crowd.learn(run)
        kinds = [ProfilerActivity.CPU]
        kinds += [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
        times = 5
        with profile(activities=kinds, acc_events=True) as seen:
            for _ in range(times):
                Timed.made.step(*Timed.made.last)
            synchronize()
    except Exception as error:
        traceback.print_exc(limit=-6)
        report.line(section="profile", case=run.name, error=str(error)[:300])
        return
    on_gpu = torch.cuda.is_available()
    took = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    events = [event for event in seen.key_averages() if getattr(event, took) > 0]
    events.sort(key=lambda event: -getattr(event, took))
    total = sum(getattr(event, took) for event in events) / times
    n_kernels = sum(event.count for event in events) / times
    report.line(section="profile", case=run.name, kernels=n_kernels, busy_us=total)
    for event in events[:30]:
        us, count = getattr(event, took) / times, event.count / times
        print(f"    {us:8.1f} us {count:5.1f} x  {event.key[:150]}", flush=True)


def show_ratios(report: Report, found: dict[Run, dict[str, Any]]) -> None:
    """Print each crowd step against the plain ones, for the bars of the benchmark."""
    steps = {run: row["step_ms"] for run, row in found.items() if "step_ms" in row}
    for run, ms in steps.items():
        against = {loss: steps.get(run._replace(loss=loss)) for loss in ("plain", "bare")}
        ratios = {f"to_{loss}": ms / base for loss, base in against.items() if base}
        if run.loss == "crowd":
            rate = found[run]["labels_per_second"]
            report.line(section="bars", case=run.name, labels_per_second=rate, **ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=28.0)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--annotators", type=int, default=100_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="    %(message)s")
    device = torch.device(options.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else options.device
    about = {"items": options.items, "annotators": options.annotators}
    report = Report(options.out, about | {"torch": torch.__version__, "device": name})
    crowd = Crowd(options.items, options.annotators, device)
    report.line(section="data", case="made")
    found: dict[Run, dict[str, Any]] = {}
    for run in [*FIRST, *PROFILED, *THEN]:
        if report.spent > options.seconds:
            break
        if run in found:
            show_profile(report, crowd, run)
        else:
            found[run] = measure(report, crowd, run)
    show_ratios(report, found)
    report.line(section="data", case="end")


if __name__ == "__main__":
    main()
