"""Training steps replayed as CUDA graphs ("fast") against plain ones: equality and speed.

    python benchmarks/fast_step.py [--out RESULTS.jsonl] [--only same,speed,profile] [--rounds 2]

Two trainings with one seed must be bitwise equal, plain or fast; fast and plain must be equal up to
rounding. Steps are timed inside `fit`: the time of whole epochs, with the GPU synchronised at the
end of each, without the first two (warm-up and recording). Variants are fitted in turn, `--rounds`
times, and the median over the epochs of each counts.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import annotrace as at
from annotrace.errors import TrainingInterrupted
from annotrace.methods import Recipe, list_methods
from annotrace.simulate import hammer_spammers, simulate_labels
from annotrace.training import loop
from annotrace.training.cuda_graphs import GraphedStep

CLASSES, ANNOTATORS = 10, 5
MNIST, CIFAR = (28, 28), (32, 32, 3)
CNN = {"backbone": "cnn", "batch_size": 50}
RESNET = {"backbone": "resnet9", "batch_size": 250}
BF16 = {"precision": "bf16"}


class Watched(GraphedStep):
    """A graphed step that the benchmark inspects after the training."""

    made: list[Watched] = []

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        Watched.made.append(self)

    def replay(self) -> None:
        """Replay the graph of the largest batch."""
        _, replay = self._graphs[max(self._graphs)]
        replay()


loop.GraphedStep = Watched


class Data:
    """Random images and labels: "dense", "uneven", "one" per item, or one per item by "many"."""

    def __init__(self, shape: tuple[int, ...], n_items: int, kind: str = "dense") -> None:
        rng = np.random.default_rng(0)
        self.truth = rng.integers(CLASSES, size=n_items)
        self.confusion = hammer_spammers(ANNOTATORS, CLASSES, 0.6, random_state=0)
        noise = rng.integers(256, size=(n_items, *shape))
        pattern = rng.integers(256, size=(CLASSES, *shape))
        self.X = ((noise + pattern[self.truth]) // 2).astype(np.uint8)
        each = None if kind in ("dense", "uneven") else 1
        full = simulate_labels(self.truth, self.confusion, labels_per_item=each, random_state=0)
        kept = rng.random(full.n_labels) < (0.7 if kind == "uneven" else 1)
        n_annotators = 1000 if kind == "many" else ANNOTATORS
        annotator = np.arange(full.n_labels) % n_annotators if kind == "many" else full.annotator
        columns = (column[kept] for column in (full.item, annotator, full.label))
        self.table = at.LabelTable.from_codes(
            *columns, n_items=n_items, n_annotators=n_annotators, n_classes=CLASSES
        )

    def fit(self, name: str, **settings: Any) -> Any:
        """Fit a method by its name."""
        if name == "oracle":
            settings["confusion"] = self.confusion
        settings = {"random_state": 0, "device": DEVICE} | settings
        return at.make(name, **settings).fit(self.X, self.table)


# Equality


def difference(one: Any, other: Any) -> float:
    """Return the largest difference between the weights and posteriors of two models."""
    pairs = list(
        zip(one.network_.state_dict().values(), other.network_.state_dict().values(), strict=True)
    )
    weights = max(float((a.double() - b.double()).abs().max()) for a, b in pairs)
    return max(weights, float(np.abs(one.posterior_ - other.posterior_).max()))


def compare(
    report: Report, case: str, data: Data, name: str, recorded: bool = True, **settings: Any
) -> None:
    """Fit plain twice and fast twice: each pair is equal, and the two differ by rounding.

    Learning rates are rounded differently, and weights before a batch normalisation, whose gradient
    is nothing but rounding, amplify that; so losses are compared.
    """
    settings = CNN | {"epochs": 4} | settings
    with report.case("same", case) as row:
        plain = [data.fit(name, cuda_graphs=False, **settings) for _ in range(2)]
        Watched.made.clear()
        fast = [data.fit(name, cuda_graphs=True, **settings) for _ in range(2)]
        row["recorded"] = [step.n_graphs for step in Watched.made]
        row["refusals"] = sorted({step.eager_reason for step in Watched.made if step.eager_reason})
        row["plain_again"] = difference(*plain)
        row["fast_again"] = difference(*fast)
        row["fast_to_plain"] = difference(plain[0], fast[0])
        losses = zip(plain[0].history_, fast[0].history_, strict=True)
        row["loss_off"] = max(abs(a.loss - b.loss) / abs(a.loss) for a, b in losses)
        row["ok"] = row["plain_again"] == row["fast_again"] == 0 and row["loss_off"] < 1e-3
        row["ok"] &= any(row["recorded"]) == (recorded and DEVICE == "cuda")


class Dropping(nn.Module):
    """A user's own network, with dropout and something that a graph may be unable to record."""

    def __init__(
        self, shape: tuple[int, ...], also: Callable[[Tensor], Any] = lambda x: None
    ) -> None:
        super().__init__()
        self.also = also
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(int(np.prod(shape)), 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(64, CLASSES),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        self.also(x)
        return self.layers(x)


# The paper's loss in one training: by default there are several, and mixup computes the loss twice.
ONCE = {"structure": "full", "recipe": Recipe(n_init=1, mixup=0.0)}
QUICK = {
    "crossfit": {"init": "votes", "n_iter": 1, "epochs": 2},
    "trace": {"recipe": Recipe(n_init=1)},
}


def check_same(report: Report, n_items: int) -> None:
    dense, one, uneven = (Data(MNIST, n_items, kind) for kind in ("dense", "one", "uneven"))
    for method in list_methods():
        if method.name != "auto":  # which is crossfit
            name = method.name
            compare(report, f"{name} dense", dense, name, **QUICK.get(name, {}))
    compare(report, "trace one", one, "trace")
    compare(report, "trace uneven", uneven, "trace")
    compare(report, "trace sparse layer", Data(MNIST, n_items, "many"), "trace")
    compare(report, "trace bf16", dense, "trace", **BF16)
    compare(report, "two-stage mixup", dense, "two-stage", backbone="mlp", mixup=0.4)
    compare(report, "trace dropout", dense, "trace", backbone=Dropping(MNIST))
    images = Data(CIFAR, 2 * n_items)
    compare(report, "trace resnet9 bf16", images, "trace", **RESNET, **BF16)
    check_unrecorded(report, dense)
    check_resumed(report, dense)


def check_unrecorded(report: Report, dense: Data) -> None:
    """Check the steps that cannot be recorded."""

    def wait(x: Tensor) -> float:
        return x.sum().item()

    def draw(x: Tensor) -> Tensor:
        return torch.rand(1)

    def synchronize(x: Tensor) -> None:
        if DEVICE == "cuda":
            torch.cuda.synchronize()  # recording fails here, which torch does not anticipate

    plain = {"recorded": False}
    compare(report, "fp16", dense, "trace", precision="fp16", **plain)
    compare(report, "waits", dense, "trace", backbone=Dropping(MNIST, wait), **plain)
    compare(report, "draws", dense, "trace", backbone=Dropping(MNIST, draw), **plain)
    network = Dropping(MNIST, synchronize)
    compare(report, "synchronizes", dense, "trace", backbone=network, **plain)
    compare(report, "after a failed recording", dense, "trace", backbone=Dropping(MNIST))


def check_resumed(report: Report, data: Data) -> None:
    settings = ONCE | {"backbone": Dropping(MNIST), "epochs": 4, "schedule": "cosine"}
    stops = iter([False, True, False, False, False, False])

    def stop(epoch: Any) -> None:
        if next(stops):
            signal.raise_signal(signal.SIGINT)

    with (
        report.case("same", "stopped and resumed") as row,
        tempfile.TemporaryDirectory() as folder,
    ):
        whole = data.fit("trace", **settings)
        again = settings | {"checkpoint": Path(folder) / "c.pt", "callbacks": [stop]}
        try:
            data.fit("trace", **again)
        except TrainingInterrupted:
            row["stopped"] = True
        resumed = data.fit("trace", **again)
        row["resumed_to_whole"] = difference(whole, resumed)
        row["ok"] = row.get("stopped", False) and row["resumed_to_whole"] == 0


# Speed


def epoch_seconds(model: Any) -> list[float]:
    """Return the seconds of each epoch but the first two."""
    ends = [epoch.seconds for epoch in model.history_]
    return [after - before for before, after in pairwise(ends[1:])]


class Variant:
    """A way to train, and the times of its steps."""

    def __init__(self, name: str, data: Data, method: str, **settings: Any) -> None:
        self.name, self.data, self.method = name, data, method
        self.settings = {"validation_fraction": 0.0, "epochs": 8} | settings
        self.epochs: list[float] = []

    def run(self) -> None:
        """Fit once, and record the times."""
        model = self.data.fit(self.method, **self.settings)
        steps = -(-len(self.data.truth) // self.settings["batch_size"])
        self.epochs += [1e3 * seconds / steps for seconds in epoch_seconds(model)]
        self.first_epoch = model.history_[0].seconds

    @property
    def ms(self) -> float:
        """Milliseconds per step, the median over all epochs so far."""
        return statistics.median(self.epochs)


def time_in_turn(
    report: Report, section: str, variants: list[Variant], rounds: int
) -> dict[str, float]:
    for _ in range(rounds):
        for variant in variants:
            variant.run()
    for variant in variants:
        with report.case("speed", f"{section} {variant.name}") as row:
            row["ms"], row["epochs_timed"] = variant.ms, len(variant.epochs)
            row["fastest"], row["slowest"] = min(variant.epochs), max(variant.epochs)
            row["first_epoch_seconds"] = variant.first_epoch
            row["ok"] = True
    return {variant.name: variant.ms for variant in variants}


def bar(report: Report, name: str, ratio: float, **wanted: float) -> None:
    """Check that a ratio is `at_least` or `at_most` a given value."""
    with report.case("bar", name) as row:
        row["ratio"] = ratio
        row |= wanted
        row["ok"] = wanted.get("at_least", 0) <= ratio <= wanted.get("at_most", np.inf)


def time_mnist(report: Report, rounds: int, n_items: int) -> None:
    dense, one, uneven = (Data(MNIST, n_items, kind) for kind in ("dense", "one", "uneven"))
    plain = CNN | {"cuda_graphs": False, "epochs": 5}
    variants = [
        Variant("vanilla plain", dense, "vanilla", **plain),
        Variant("vanilla fast", dense, "vanilla", **CNN),
        Variant("trace plain", dense, "trace", **ONCE, **plain),
        Variant("trace fast", dense, "trace", **ONCE, **CNN),
        Variant("trace one plain", one, "trace", **ONCE, **plain),
        Variant("trace one fast", one, "trace", **ONCE, **CNN),
        Variant("vanilla one fast", one, "vanilla", **CNN),
        Variant("trace uneven fast", uneven, "trace", **ONCE, **CNN),
    ]
    took = time_in_turn(report, "mnist", variants, rounds)
    for name in ("vanilla", "trace", "trace one"):
        ratio = took[f"{name} plain"] / took[f"{name} fast"]
        bar(report, f"mnist {name}: plain to fast", ratio, at_least=3)
    for kind in ("", " one"):
        ratio = took[f"trace{kind} fast"] / took[f"vanilla{kind} fast"]
        bar(report, f"mnist{kind}: trace to vanilla", ratio, at_most=1.1)


def time_cifar(report: Report, rounds: int, n_items: int) -> None:
    dense = Data(CIFAR, n_items)
    variants = [
        Variant("trace plain float32", dense, "trace", **ONCE, cuda_graphs=False, **RESNET),
        Variant("trace plain bf16", dense, "trace", **ONCE, cuda_graphs=False, **RESNET, **BF16),
        Variant("trace fast float32", dense, "trace", **ONCE, **RESNET),
        Variant("trace fast bf16", dense, "trace", **ONCE, **RESNET, **BF16),
        Variant("vanilla fast bf16", dense, "vanilla", **RESNET, **BF16),
    ]
    took = time_in_turn(report, "resnet9", variants, rounds)
    fast = took["trace fast bf16"]
    for precision in ("float32", "bf16"):
        ratio = took[f"trace plain {precision}"] / fast
        bar(report, f"resnet9: plain {precision} to fast bf16", ratio, at_least=1.5)
    bar(report, "resnet9: trace to vanilla", fast / took["vanilla fast bf16"], at_most=1.1)


def count_kernels(
    report: Report, case: str, data: Data, method: str, times: int = 10, **settings: Any
) -> None:
    """Count the kernels of a recorded step, and print those that take longest."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    with report.case("profile", case) as row:
        Watched.made.clear()
        data.fit(method, epochs=2, validation_fraction=0.0, **settings)
        kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profiled(activities=kinds, acc_events=True) as seen:
            for _ in range(times):
                Watched.made[-1].replay()
            torch.cuda.synchronize()
        events = [event for event in seen.key_averages() if event.self_device_time_total > 0]
        row["kernels_a_step"] = sum(event.count for event in events) / times
        row["busy_us_a_step"] = sum(event.self_device_time_total for event in events) / times
        row["ok"] = True
        for event in sorted(events, key=lambda event: -event.self_device_time_total)[:40]:
            us, count = event.self_device_time_total / times, event.count / times
            print(f"    {us:8.1f} us {count:5.1f} x  {event.key[:130]}", flush=True)


class Report:
    """Prints and writes one line per case, and continues when one fails."""

    def __init__(self, out: Path | None) -> None:
        self.out, self.failed = out, []
        self.about = {
            "torch": torch.__version__,
            "cudnn": torch.backends.cudnn.version(),
            "device": torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE,
        }

    @contextmanager
    def case(self, section: str, name: str) -> Iterator[dict[str, Any]]:
        """Yield a row to fill in; the case passes if its `ok` is true."""
        row: dict[str, Any] = {"experiment": "fast_step", "section": section, "case": name}
        try:
            yield row
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {str(error)[:500]}"
            traceback.print_exc(limit=-4)
        passed = row.get("ok", False)
        if not passed:
            self.failed.append(f"{section}: {name}")
        figures = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in row.items()
            if key not in ("experiment", "section", "case", "ok")
        )
        print(f"{'ok  ' if passed else 'FAIL'} {section}: {name}  {figures}", flush=True)
        if self.out is not None:
            with self.out.open("a") as file:
                file.write(json.dumps(row | self.about).replace(f"{Path.cwd()}/", "") + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="same,speed,profile")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    global DEVICE
    DEVICE = options.device
    logging.basicConfig(level=logging.INFO, format="    %(message)s")
    report = Report(options.out)
    print(report.about, flush=True)
    sections: dict[str, Callable[[], None]] = {
        "same": lambda: check_same(report, options.items // 5),
        "speed": lambda: (
            time_mnist(report, options.rounds, options.items),
            time_cifar(report, options.rounds, options.items),
        ),
        "profile": lambda: (
            count_kernels(report, "mnist vanilla", Data(MNIST, 1000), "vanilla", **CNN),
            count_kernels(report, "mnist trace", Data(MNIST, 1000), "trace", **CNN),
            count_kernels(report, "resnet9", Data(CIFAR, 1000), "trace", **RESNET, **BF16),
        ),
    }
    for name in options.only.split(","):
        started = time.perf_counter()
        sections[name]()
        print(f"-- {name} took {time.perf_counter() - started:.0f} s", flush=True)
    print("not ok:", ", ".join(report.failed) or "none", flush=True)


DEVICE = "cpu"

if __name__ == "__main__":
    main()
