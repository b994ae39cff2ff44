"""The replayed training step beside the plain one: whether it is the same, and how much faster.

    python benchmarks/fast_step.py [--out RESULTS.jsonl] [--only same,speed,profile] [--rounds 2]

Steps are timed inside `fit`, as they run in a training: the time of whole epochs, the GPU waited
for at the end of each, without the first two (warm-up and recording). Variants are fitted in turn,
`--rounds` times, and each is given by the median over its epochs. Images are random.
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
from annotrace.methods import base
from annotrace.methods.registry import METHODS
from annotrace.simulate import hammer_spammers, simulate_labels
from annotrace.training import fast_step, loop

CLASSES, ANNOTATORS = 10, 5
MNIST, CIFAR = (28, 28), (32, 32, 3)


class Watched(fast_step.FastStep):
    """A fast step that can be asked about after the training."""

    made: list[Watched] = []

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        Watched.made.append(self)

    def replays(self) -> list[Callable[[], None]]:
        """Give the recorded steps, that of the most items first."""
        return [self._replays[shape]._replay for shape in sorted(self._replays, reverse=True)]


loop.FastStep = Watched


class Data:
    """Random images and labels of a crowd."""

    def __init__(self, shape: tuple[int, ...], n_items: int, labels: int | str) -> None:
        rng = np.random.default_rng(0)
        self.truth = rng.integers(CLASSES, size=n_items)
        self.confusion = hammer_spammers(ANNOTATORS, CLASSES, 0.6, random_state=0)
        noise = rng.integers(256, size=(n_items, *shape))
        pattern = rng.integers(256, size=(CLASSES, *shape))
        self.X = ((noise + pattern[self.truth]) // 2).astype(np.uint8)
        each = None if labels in ("dense", "uneven") else int(labels)
        self.table = simulate_labels(
            self.truth, self.confusion, labels_per_item=each, random_state=0
        )
        if labels == "uneven":
            kept = rng.random(self.table.n_labels) < 0.7
            columns = (self.table.item, self.table.annotator, self.table.label)
            self.table = at.LabelTable.from_codes(
                *(column[kept] for column in columns),
                n_items=n_items,
                n_annotators=ANNOTATORS,
                n_classes=CLASSES,
            )

    def fit(self, name: str, **settings: Any) -> Any:
        """Fit a method by its name."""
        if name == "oracle":
            settings["confusion"] = self.confusion
        settings = {"random_state": 0, "device": DEVICE} | settings
        return at.make(name, **settings).fit(self.X, self.table)


# Is it the same?


def difference(one: Any, other: Any) -> float:
    """Give the largest difference of two fitted networks, relative to the largest weight."""
    pairs = zip(
        one.network_.state_dict().values(), other.network_.state_dict().values(), strict=True
    )
    return max(
        float((a.float() - b.float()).abs().max() / a.float().abs().max().clamp_min(1e-3))
        for a, b in pairs
    )


def compare(
    report: Report, case: str, data: Data, name: str, recorded: bool = True, **settings: Any
) -> None:
    """Fit plain twice and fast twice; the fast may differ by little more than the plain do."""
    settings = {"epochs": 4, "batch_size": 50} | settings
    with report.case("same", case) as row:
        plain = [data.fit(name, fast=False, **settings) for _ in range(2)]
        Watched.made.clear()
        fast = [data.fit(name, fast=True, **settings) for _ in range(2)]
        steps = list(Watched.made)
        row["recorded"] = [step.n_recorded for step in steps]
        row["refusals"] = sorted({step.refusal for step in steps if step.refusal})
        row["plain_again"] = difference(*plain)
        row["fast_again"] = difference(*fast)
        row["fast_to_plain"] = difference(plain[0], fast[0])
        row["posterior_off"] = float(np.abs(plain[0].posterior_ - fast[0].posterior_).max())
        losses = [[epoch.loss for epoch in model.history_] for model in (plain[0], fast[0])]
        row["losses"] = losses
        off = max(abs(a - b) / abs(a) for a, b in zip(*losses, strict=True))
        row["loss_off"] = off
        row["ok"] = off < 1e-2 and any(row["recorded"]) == recorded
        row["ok"] &= row["fast_to_plain"] <= max(1e-3, 10 * row["plain_again"])


class Dropping(nn.Module):
    """A network of a user's own, with dropout and something a graph may not be able to take."""

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
        """Give logits."""
        self.also(x)
        return self.layers(x)


class Slow:
    """A source that is loaded batch by batch."""

    items = None

    def __init__(self, X: np.ndarray) -> None:
        self.rows, self.shape = X, X.shape[1:]

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, positions: np.ndarray) -> np.ndarray:
        """Load some rows."""
        return self.rows[positions]


def check_same(report: Report, n_items: int) -> None:
    dense, one, uneven = (Data(MNIST, n_items, labels) for labels in ("dense", 1, "uneven"))
    for name in METHODS:
        for kind, data in (("dense", dense), ("one", one), ("uneven", uneven)):
            compare(report, f"{name} {kind}", data, name, backbone="cnn")
    compare(report, "trace bf16", dense, "trace", backbone="cnn", precision="bf16")
    compare(report, "trace cosine", dense, "trace", backbone="cnn", schedule="cosine")
    compare(report, "two-stage mixup", dense, "two-stage", backbone="mlp", mixup=0.4)
    compare(report, "trace no held out", dense, "trace", backbone="cnn", validation=0.0)
    compare(report, "trace dropout", dense, "trace", backbone=Dropping(MNIST))
    images = Data(CIFAR, n_items, "dense")
    compare(report, "trace resnet9", images, "trace", backbone="resnet9", batch_size=250)
    compare(
        report,
        "trace resnet9 bf16",
        images,
        "trace",
        backbone="resnet9",
        batch_size=250,
        precision="bf16",
    )
    check_fallbacks(report, dense)


def check_fallbacks(report: Report, dense: Data) -> None:
    def wait(x: Tensor) -> float:
        return x.sum().item()

    def draw(x: Tensor) -> Tensor:
        return torch.rand(1)

    plain = {"recorded": False}
    compare(report, "fp16", dense, "trace", backbone="cnn", precision="fp16", **plain)
    compare(report, "waits", dense, "trace", backbone=Dropping(MNIST, wait), **plain)
    compare(report, "draws", dense, "trace", backbone=Dropping(MNIST, draw), **plain)
    n_items = len(dense.truth)
    many = Data(MNIST, n_items, 1)
    many.table = at.LabelTable.from_codes(
        many.table.item,
        np.arange(n_items) % 1000,
        many.table.label,
        n_items=n_items,
        n_annotators=1000,
        n_classes=CLASSES,
    )
    compare(report, "sparse layer", many, "trace", backbone="cnn", **plain)
    lazy = Data(MNIST, n_items, 1)
    lazy.X = Slow(lazy.X)
    compare(report, "loaded by batch", lazy, "trace", backbone="cnn", **plain)
    check_resumed(report, dense)


def check_failure(report: Report, n_items: int) -> None:
    """Let a recording fail, which torch does not see coming, and go on."""

    def synchronize(x: Tensor) -> None:
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    dense, plain = Data(MNIST, n_items, "dense"), {"recorded": False}
    compare(report, "synchronizes", dense, "trace", backbone=Dropping(MNIST, synchronize), **plain)
    compare(report, "after a failed recording", dense, "trace", backbone=Dropping(MNIST))


def check_resumed(report: Report, data: Data) -> None:
    settings = {"backbone": Dropping(MNIST), "epochs": 4, "batch_size": 50, "schedule": "cosine"}
    stops = iter([False, True, False, False, False, False])

    def stop(epoch: Any) -> None:
        if next(stops):
            signal.raise_signal(signal.SIGINT)

    with (
        report.case("same", "stopped and taken up") as row,
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
        row["epochs"] = len(resumed.history_)
        row["ok"] = row.get("stopped", False) and row["resumed_to_whole"] < 1e-3


# How fast is it?


@contextmanager
def networks(change: Callable[[nn.Module], nn.Module]) -> Iterator[None]:
    """Change every network that is built."""
    built = base.build_backbone

    def build(*given: Any) -> nn.Module:
        return change(built(*given))

    base.build_backbone = build
    try:
        yield
    finally:
        base.build_backbone = built


@contextmanager
def cudnn(**flags: bool) -> Iterator[None]:
    """Set flags of cudnn for a while."""
    before = {name: getattr(torch.backends.cudnn, name) for name in flags}
    for name, value in flags.items():
        setattr(torch.backends.cudnn, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(torch.backends.cudnn, name, value)


def channels_last(network: nn.Module) -> nn.Module:
    return network.to(memory_format=torch.channels_last)


def compiled(network: nn.Module) -> nn.Module:
    network.compile()
    return channels_last(network)


def epoch_seconds(model: Any) -> list[float]:
    """Give the seconds of each epoch but the first two."""
    ends = [epoch.seconds for epoch in model.history_]
    return [after - before for before, after in pairwise(ends[1:])]


class Variant:
    """A way to train, and the steps it was timed at."""

    def __init__(self, name: str, data: Data, method: str, **settings: Any) -> None:
        self.name, self.data, self.method = name, data, method
        self.change = settings.pop("change", lambda network: network)
        self.flags = settings.pop("flags", {})
        self.settings = {"validation": 0.0} | settings
        self.epochs: list[float] = []
        self.first: list[float] = []

    def run(self) -> None:
        """Fit once, and note the times."""
        started = time.perf_counter()
        Watched.made.clear()
        with networks(self.change), cudnn(**self.flags):
            model = self.data.fit(self.method, **self.settings)
        steps = -(-len(self.data.truth) // self.settings["batch_size"])
        self.epochs += [1e3 * seconds / steps for seconds in epoch_seconds(model)]
        self.first.append(model.history_[0].seconds)
        self.whole = time.perf_counter() - started
        self.refusals = [step.refusal for step in Watched.made]
        self.device_ms = replay_ms(Watched.made[-1]) if Watched.made and DEVICE == "cuda" else None

    @property
    def ms(self) -> float:
        """Milliseconds a step, the median over all epochs so far."""
        return statistics.median(self.epochs)


def replay_ms(step: Watched, times: int = 100) -> float | None:
    """Time recorded steps on the GPU itself, one after the other."""
    if not step.replays():
        return None
    replay = step.replays()[0]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for _ in range(5):
        start.record()
        for _ in range(times):
            replay()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) / times)
    return statistics.median(taken)


def time_in_turn(
    report: Report, section: str, variants: list[Variant], rounds: int
) -> dict[str, float]:
    for turn in range(rounds):
        for variant in list(variants):
            try:
                variant.run()
            except Exception as error:
                print(
                    f"  {section} {variant.name} FAILED in round {turn}: {error!r:.300}", flush=True
                )
                traceback.print_exc(limit=-3)
                variants.remove(variant)
    for variant in variants:
        with report.case("speed", f"{section} {variant.name}") as row:
            row["ms"], row["steps_timed"] = variant.ms, len(variant.epochs)
            row["spread"] = [min(variant.epochs), max(variant.epochs)]
            row["on_device_ms"] = variant.device_ms
            row["first_epoch_seconds"] = min(variant.first)
            row["fit_seconds"] = variant.whole
            row["refusals"] = variant.refusals
            row["ok"] = True
    return {variant.name: variant.ms for variant in variants}


def ratio(
    report: Report, name: str, took: dict[str, float], over: str, under: str, bar: float
) -> None:
    """Print how much longer one variant takes than another, and whether that reaches the bar."""
    if over not in took or under not in took:
        print(f"  BAR {name}: not measured ({over} to {under})", flush=True)
        return
    with report.case("bar", name) as row:
        row["ratio"], row["bar"] = took[over] / took[under], bar
        row["ok"] = row["ratio"] >= bar if bar > 1.2 else row["ratio"] <= bar


def time_mnist(report: Report, rounds: int, n_items: int) -> None:
    dense, one, uneven = (Data(MNIST, n_items, labels) for labels in ("dense", 1, "uneven"))
    usual = {"backbone": "cnn", "batch_size": 50, "epochs": 7}
    bf16 = {"precision": "bf16"}
    variants = [
        Variant("vanilla plain", dense, "vanilla", fast=False, **usual),
        Variant("vanilla fast", dense, "vanilla", **usual),
        Variant("trace plain", dense, "trace", fast=False, **usual),
        Variant("trace fast", dense, "trace", **usual),
        Variant("trace one plain", one, "trace", fast=False, **usual),
        Variant("trace one fast", one, "trace", **usual),
        Variant("vanilla one fast", one, "vanilla", **usual),
        Variant("trace uneven plain", uneven, "trace", fast=False, **usual),
        Variant("trace uneven fast", uneven, "trace", **usual),
        Variant("oracle fast", dense, "oracle", **usual),
        Variant("trace fast channels-last", dense, "trace", change=channels_last, **usual),
        Variant("trace fast tuned", dense, "trace", flags={"benchmark": True}, **usual),
        Variant("trace fast deterministic", dense, "trace", flags={"deterministic": True}, **usual),
        Variant("trace fast bf16", dense, "trace", **usual, **bf16),
        Variant("vanilla fast bf16", dense, "vanilla", **usual, **bf16),
        Variant(
            "trace fast bf16 channels-last", dense, "trace", change=channels_last, **usual, **bf16
        ),
    ]
    took = time_in_turn(report, "mnist", variants, rounds)
    ratio(report, "mnist trace dense: plain to fast", took, "trace plain", "trace fast", 3)
    ratio(report, "mnist trace one: plain to fast", took, "trace one plain", "trace one fast", 3)
    ratio(report, "mnist vanilla: plain to fast", took, "vanilla plain", "vanilla fast", 3)
    ratio(
        report, "mnist uneven: plain to fast", took, "trace uneven plain", "trace uneven fast", 1.5
    )
    ratio(report, "mnist trace to vanilla, dense", took, "trace fast", "vanilla fast", 1.1)
    ratio(report, "mnist trace to vanilla, one", took, "trace one fast", "vanilla one fast", 1.1)
    ratio(report, "mnist trace to vanilla, plain", took, "trace plain", "vanilla plain", 1.1)


def time_cifar(report: Report, rounds: int, n_items: int) -> None:
    dense, one = Data(CIFAR, n_items, "dense"), Data(CIFAR, n_items, 1)
    usual = {"backbone": "resnet9", "batch_size": 250, "epochs": 6}
    bf16 = {"precision": "bf16"}
    last = {"change": channels_last}
    tuned = {"flags": {"benchmark": True}}
    variants = [
        Variant("trace plain float32", dense, "trace", fast=False, **usual),
        Variant("trace plain bf16", dense, "trace", fast=False, **usual, **bf16),
        Variant(
            "trace plain bf16 channels-last", dense, "trace", fast=False, **usual, **bf16, **last
        ),
        Variant("trace fast float32", dense, "trace", **usual),
        Variant("trace fast float32 channels-last", dense, "trace", **usual, **last),
        Variant("trace fast bf16", dense, "trace", **usual, **bf16),
        Variant("trace fast bf16 channels-last", dense, "trace", **usual, **bf16, **last),
        Variant(
            "trace fast bf16 channels-last tuned", dense, "trace", **usual, **bf16, **last, **tuned
        ),
        Variant(
            "trace fast bf16 channels-last deterministic",
            dense,
            "trace",
            flags={"deterministic": True},
            **usual,
            **bf16,
            **last,
        ),
        Variant("vanilla fast bf16 channels-last", dense, "vanilla", **usual, **bf16, **last),
        Variant("trace one fast bf16 channels-last", one, "trace", **usual, **bf16, **last),
    ]
    took = time_in_turn(report, "cifar", variants, rounds)
    best = "trace fast bf16 channels-last"
    ratio(report, "resnet9: plain float32 to fast", took, "trace plain float32", best, 1.5)
    ratio(report, "resnet9: plain bf16 to fast", took, "trace plain bf16", best, 1.5)
    ratio(
        report,
        "resnet9: plain float32 to fast float32",
        took,
        "trace plain float32",
        "trace fast float32",
        1.5,
    )
    ratio(report, "resnet9: trace to vanilla", took, best, "vanilla fast bf16 channels-last", 1.1)


def time_compiled(report: Report, n_items: int) -> None:
    dense = Data(CIFAR, n_items, "dense")
    usual = {"backbone": "resnet9", "batch_size": 250, "epochs": 6, "precision": "bf16"}
    variants = [
        Variant("resnet9 compiled, fast", dense, "trace", change=compiled, **usual),
        Variant("resnet9 compiled, plain", dense, "trace", change=compiled, fast=False, **usual),
        Variant("resnet9 fast", dense, "trace", change=channels_last, **usual),
    ]
    time_in_turn(report, "compile", variants, 1)


def time_prediction(report: Report, n_items: int) -> None:
    data = Data(CIFAR, n_items, "dense")
    for layout in (lambda network: network, channels_last):
        with report.case("speed", f"prediction {layout.__name__}") as row, networks(layout):
            model = data.fit(
                "trace", backbone="resnet9", batch_size=250, epochs=1, precision="bf16"
            )
            before = base.PREDICT_BATCH
            for size in (1024, 4096):
                base.PREDICT_BATCH = size
                times = []
                for _ in range(4):
                    started = time.perf_counter()
                    model.predict_proba(data.X)
                    times.append(time.perf_counter() - started)
                row[f"rows_a_second_{size}"] = n_items / min(times)
            base.PREDICT_BATCH = before
            row["ok"] = True


# Where does the time go?


def profile(report: Report, n_items: int) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    dense, images = Data(MNIST, n_items, "dense"), Data(CIFAR, n_items, "dense")
    small = {"backbone": "cnn", "batch_size": 50, "epochs": 1, "validation": 0.0}
    large = {"backbone": "resnet9", "batch_size": 250, "epochs": 1, "validation": 0.0}
    cases = [
        ("mnist vanilla", dense, "vanilla", small),
        ("mnist trace", dense, "trace", small),
        ("resnet9 trace bf16", images, "trace", large | {"precision": "bf16"}),
    ]
    for case, data, method, settings in cases:
        with (
            report.case("profile", case) as row,
            networks(channels_last if "resnet" in case else nn.Module.train),
        ):
            Watched.made.clear()
            data.fit(method, **settings)
            replay = Watched.made[-1].replays()[0]
            replay()
            torch.cuda.synchronize()
            with profiled(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as prof:
                for _ in range(10):
                    replay()
                torch.cuda.synchronize()
            events = [e for e in prof.key_averages() if e.self_device_time_total > 0]
            row["kernels_a_step"] = sum(e.count for e in events) / 10
            row["busy_us_a_step"] = sum(e.self_device_time_total for e in events) / 10
            row["ok"] = True
            events.sort(key=lambda e: -e.self_device_time_total)
            for e in events[:45]:
                us = e.self_device_time_total
                print(f"    {us / 10:8.1f} us {e.count / 10:5.1f} x  {e.key[:110]}", flush=True)


class Report:
    """Prints a line a case, writes it down, and goes on when one fails."""

    def __init__(self, out: Path | None) -> None:
        self.out, self.failed, self.done = out, [], 0
        self.about = {"torch": torch.__version__, "device": device_name()}

    @contextmanager
    def case(self, section: str, name: str) -> Iterator[dict[str, Any]]:
        """Give a row to fill in; it is right if its `ok` is."""
        row: dict[str, Any] = {"experiment": "fast_step", "section": section, "case": name}
        try:
            yield row
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {str(error)[:500]}"
            traceback.print_exc(limit=-4)
        self.done += 1
        right = row.get("ok", False)
        if not right:
            self.failed.append(f"{section}: {name}")
        shown = {key: _short(value) for key, value in row.items() if key not in _QUIET}
        figures = "  ".join(f"{key} {value}" for key, value in shown.items())
        print(f"{'ok  ' if right else 'FAIL'} {section}: {name}  {figures}", flush=True)
        if self.out is not None:
            with self.out.open("a") as file:
                file.write(json.dumps(row | self.about) + "\n")


_QUIET = ("experiment", "section", "case", "ok", "losses")


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "[" + ", ".join(str(_short(part)) for part in value) + "]"
    return value


def device_name() -> str:
    return torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="same,speed,profile,compile,failure")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    global DEVICE
    DEVICE = options.device
    logging.basicConfig(level=logging.INFO, format="    %(message)s")
    report = Report(options.out)
    print(report.about, "cudnn", torch.backends.cudnn.version(), flush=True)
    sections: dict[str, Callable[[], None]] = {
        "same": lambda: check_same(report, options.items // 5),
        "speed": lambda: (
            time_mnist(report, options.rounds, options.items),
            time_cifar(report, options.rounds, options.items),
            time_prediction(report, options.items),
        ),
        "profile": lambda: profile(report, options.items),
        "compile": lambda: time_compiled(report, options.items),
        "failure": lambda: check_failure(report, options.items // 5),
    }
    for name in options.only.split(","):
        started = time.perf_counter()
        try:
            sections[name]()
        except Exception:
            traceback.print_exc()
            report.failed.append(name)
        print(f"-- {name} took {time.perf_counter() - started:.0f} s", flush=True)
    print(f"{report.done} cases; not ok: {report.failed or 'none'}", flush=True)


DEVICE = "cpu"

if __name__ == "__main__":
    main()
