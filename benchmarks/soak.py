"""Memory of one process that fits, saves, loads and reports for an hour.

usage: python benchmarks/soak.py [--minutes 60] [--seed 0] [--leak MB] [--out results/soak.jsonl]

Each round simulates a crowd of random size, fits a random method or aggregation, and then does, in
part, what users do with a fit: predict, save and load, diagnose, allocate, write the report, write
and read the labels. A warm-up that uses every method and aggregation once comes first. After each
round, garbage is collected, free memory goes back to the system, and one sample is taken: resident
memory, objects, tensors, open files, threads, temporary files.

The first sixth of the samples is left out, the second sixth is the reference. The run passes if the
median of the last third exceeds the median of the reference by at most 5 % for memory and objects,
and not at all for the other counts. `--leak` keeps so many megabytes per round, to see that a leak
is found. Linux only; exit status 1 if anything grows.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import annotrace as at

ALLOWED_GROWTH = {
    "megabytes": 0.05,
    "objects": 0.05,
    "tensors": 0.0,
    "files": 0.0,
    "threads": 0.0,
    "temporary": 0.0,
}
# A shorter reference would be a matter of luck.
FEWEST_ROUNDS = 30
# Quick settings: the code of the defaults, less often.
SETTINGS = {
    "auto": {"n_iter": 1},
    "crossfit": {"init": "votes", "n_iter": 2},
    "trace": {"recipe": at.Recipe(n_init=1)},
    "gem": {"n_steps": 2},
}
MODELS = [("method", entry.name) for entry in at.list_methods()] + [
    ("aggregation", entry.name) for entry in at.aggregation.list_aggregations()
]


class Crowd:
    """A simulated crowd of random size, with features or images of the items."""

    def __init__(self, rng: np.random.Generator) -> None:
        n_items, n_classes = int(rng.integers(30, 300)), int(rng.integers(2, 7))
        n_annotators = int(rng.integers(3, 16))
        truth = rng.integers(n_classes, size=n_items)
        self.confusion = at.simulate.hammer_spammers(n_annotators, n_classes, 0.7, rng)
        self.table = at.simulate.simulate_labels(
            truth, self.confusion, labels_per_item=int(rng.integers(1, 4)), random_state=rng
        )
        shape = (1, 8, 8) if rng.random() < 0.3 else (int(rng.integers(2, 40)),)
        centres = rng.normal(size=(n_classes, *shape))
        noise = 0.5 * rng.normal(size=(n_items, *shape))
        self.X = (centres[truth] + noise).astype(np.float32)


def fit(kind: str, name: str, crowd: Crowd, rng: np.random.Generator) -> Any:
    """Return a fitted method or aggregation."""
    seed = int(rng.integers(2**31))
    if kind == "aggregation":
        model = at.aggregation.make(name, random_state=seed).fit(crowd.table)
        return model.partial_fit(crowd.table) if rng.random() < 0.2 else model
    given = {"confusion": crowd.confusion} if name == "oracle" else SETTINGS.get(name, {})
    model = at.make(name, random_state=seed, epochs=int(rng.integers(2, 5)), **given)
    return model.fit(crowd.X, crowd.table)


def predict(model: Any, crowd: Crowd) -> None:
    probabilities = model.predict_proba(crowd.X) if hasattr(model, "network_") else model.posterior_
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-4)


def save_and_load(model: Any, crowd: Crowd) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "run")
        loaded = at.load(Path(folder) / "run")
        assert np.array_equal(loaded.posterior_, model.posterior_)


def diagnose(model: Any, crowd: Crowd) -> None:
    if model.result_.annotator_model is not None:
        assert model.diagnosis_.verdict in ("identified", "weak", "not identified")
        assert len(model.annotators_) == crowd.table.n_annotators


def report(model: Any, crowd: Crowd) -> None:
    with tempfile.TemporaryDirectory() as folder:
        at.write_report(model, Path(folder) / "report.html")


def allocate(model: Any, crowd: Crowd) -> None:
    at.allocate(model, budget=20)


def write_and_read(model: Any, crowd: Crowd) -> None:
    with tempfile.TemporaryDirectory() as folder:
        crowd.table.write(Path(folder) / "labels.csv")
        assert len(at.LabelTable.read(Path(folder) / "labels.csv")) == len(crowd.table)


USES: tuple[Callable[[Any, Crowd], None], ...] = (
    predict,
    save_and_load,
    diagnose,
    report,
    allocate,
    write_and_read,
)


def run_rounds(rng: np.random.Generator) -> Iterator[None]:
    """Fit and use random models without end; yield after each round."""
    while True:
        crowd = Crowd(rng)
        model = fit(*MODELS[rng.integers(len(MODELS))], crowd, rng)
        for use in USES:
            if rng.random() < 0.4:
                use(model, crowd)
        del crowd, model
        yield


def warm_up(rng: np.random.Generator) -> None:
    """Use every model once, in every way: imports and caches fill."""
    for kind, name in MODELS:
        crowd = Crowd(rng)
        model = fit(kind, name, crowd, rng)
        for use in USES:
            use(model, crowd)


def measure(folder: Path) -> dict[str, float]:
    """Return the resident memory and the counts of this process, garbage left out."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    objects = gc.get_objects()
    return {
        "megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "objects": len(objects),
        "tensors": sum(issubclass(type(thing), torch.Tensor) for thing in objects),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "temporary": len(list(folder.iterdir())),
    }


def judge(samples: list[dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Compare the last third of the samples with the second sixth."""
    n = len(samples)
    found = {}
    for name, allowed in ALLOWED_GROWTH.items():
        series = np.array([sample[name] for sample in samples])
        first, last = np.median(series[n // 6 : n // 3]), np.median(series[n - n // 3 :])
        growth = float(last / first - 1) if first else float(last > 0)
        found[name] = {
            "first": round(float(first), 2),
            "last": round(float(last), 2),
            "highest": round(float(series.max()), 2),
            "growth": round(growth, 4),
            "flat": growth <= allowed,
        }
    return found


def soak(seconds: float, seed: int, leak: int = 0) -> dict[str, Any]:
    """Run rounds for a time and return the record of the run."""
    rng, kept, samples = np.random.default_rng(seed), [], []
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        warm_up(rng)
        end, rounds = time.monotonic() + seconds, run_rounds(rng)
        while time.monotonic() < end or len(samples) < FEWEST_ROUNDS:
            next(rounds)
            kept.append(np.ones(leak * 2**17))
            samples.append(measure(Path(folder)))
        tempfile.tempdir = None
    return {
        "experiment": "soak",
        "seconds": round(seconds),
        "seed": seed,
        "rounds": len(samples),
        "leak": leak,
        **judge(samples),
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def show(record: dict[str, Any]) -> None:
    print(f"{record['rounds']} rounds in {record['seconds']} s, seed {record['seed']}")
    print(f"{'':10} {'first':>9} {'last':>9} {'highest':>9} {'growth':>8} {'allowed':>8}")
    for name, allowed in ALLOWED_GROWTH.items():
        row = record[name]
        print(
            f"{name:10} {row['first']:9.1f} {row['last']:9.1f} {row['highest']:9.1f} "
            f"{row['growth']:8.2%} {allowed:8.0%}  {'flat' if row['flat'] else 'GROWS'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--leak", type=int, default=0, metavar="MB")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    record = soak(60 * options.minutes, options.seed, options.leak)
    show(record)
    if options.out is not None:
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    sys.exit(0 if all(record[name]["flat"] for name in ALLOWED_GROWTH) else 1)


if __name__ == "__main__":
    main()
