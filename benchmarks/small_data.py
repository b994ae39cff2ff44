"""Real and simulated crowds of common sizes: the default beside the other methods.

usage: python benchmarks/small_data.py [--data DIR] [--only labelme,sentiment,...] [--seeds 5]
                                       [--out FILE] [--device auto] [--show FILE ...]

    labelme    1,000 images (VGG features), 59 annotators, 2.5 labels per item; test part of 1,188
    sentiment  4,999 sentences (LSA features), 203 annotators, 5.5 labels per item; five folds
    cifar10n   5,000 images of CIFAR-10, three anonymous columns of labels; a small network
    flippers   digits, one label per item by five pairwise flippers at .35, dominant draws
    images     the same, on images of 8 x 8 pixels
    hammers    digits, five labels per item by hammer-spammers at .5

Methods run with their defaults, and nothing in a run is chosen by truth. Writes one JSON line per
run and prints tables; `--show` prints the tables of earlier runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import ttest_rel

import annotrace as at
from annotrace.diagnosis import (
    balanced_accuracy,
    calibration_error,
    confusion_error,
    dominant_draws,
)
from annotrace.simulate import hammer_spammers, pairwise_flippers, simulate_labels


class Crowd(NamedTuple):
    """Items with labels and truth, and test items."""

    X: np.ndarray
    table: at.LabelTable
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    confusion: np.ndarray | None = None


COMPARED = {
    "labelme": ("auto", "trace", "trace@paper", "two-stage", "vanilla"),
    "sentiment": ("auto", "vanilla"),
    "cifar10n": ("auto", "trace", "vanilla"),
    "flippers": ("auto", "trace"),
    "images": ("auto", "vanilla"),
    "hammers": ("auto", "trace", "oracle"),
}
SETTINGS: dict[str, dict[str, Any]] = {"two-stage": {"aggregate": "dawid-skene", "mixup": 1.0}}


def labelme(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    z = np.load(data / "crowd" / "labelme.npz")
    table = at.LabelTable.from_wide(z["A"])
    crowd = Crowd(z["vgg_train"], table, z["y_train"], z["vgg_test"], z["y_test"])
    return ((seed, crowd) for seed in range(seeds))


def sentiment(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    z = np.load(data / "crowd" / "sentiment_polarity.npz")
    X, y, labels = z["X_lsa"].astype(np.float32), z["y"], z["A"]
    order = np.random.default_rng(0).permutation(len(y))
    for fold in range(5):
        test, train = order[fold::5], np.setdiff1d(order, order[fold::5])
        table = at.LabelTable.from_wide(labels[train])
        yield fold, Crowd(X[train], table, y[train], X[test], y[test])


def cifar10n(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    z = np.load(data / "cifar10" / "cifar10_train_1.npz")
    images = z["d"].cumsum(0, dtype="u1").cumsum(2, dtype="u1").cumsum(3, dtype="u1")
    images, y = images.transpose(1, 2, 3, 0), z["y"]
    columns = np.load(data / "crowd" / "cifar10n.npz")["R"][:5000]
    table = at.LabelTable.from_wide(columns.astype(np.int64))
    crowd = Crowd(images[:5000], table, y[:5000], images[5000:], y[5000:])
    return ((seed, crowd) for seed in range(seeds))


def flippers(data: Path, seeds: int, *, images: bool = False) -> Iterator[tuple[int, Crowd]]:
    for seed, confusion in dominant_draws(partial(pairwise_flippers, 5, 10, 0.35), 2 * seeds):
        yield seed, digits_crowd(confusion, seed, labels_per_item=1, images=images)


def images(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    return flippers(data, seeds, images=True)


def hammers(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    for seed in range(seeds):
        confusion = hammer_spammers(5, 10, 0.5, random_state=seed)
        yield seed, digits_crowd(confusion, seed, labels_per_item=None)


SETS: dict[str, Callable[[Path, int], Iterator[tuple[int, Crowd]]]] = {
    function.__name__: function
    for function in (labelme, sentiment, cifar10n, flippers, images, hammers)
}


def digits_crowd(
    confusion: np.ndarray, seed: int, labels_per_item: int | None, *, images: bool = False
) -> Crowd:
    train, test = at.data.load_digits(images=images).split(1400)
    table = simulate_labels(train.y, confusion, labels_per_item=labels_per_item, random_state=seed)
    return Crowd(train.X, table, train.y, test.X, test.y, confusion)


def run(name: str, crowd: Crowd, seed: int, device: str) -> dict[str, Any]:
    method, _, protocol = name.partition("@")
    settings = SETTINGS.get(method, {}) | ({"protocol": protocol} if protocol else {})
    given = {"confusion": crowd.confusion} if method == "oracle" else {}
    model = at.make(method, random_state=seed, device=device, **settings, **given)
    started = time.perf_counter()
    model.fit(crowd.X, crowd.table)
    seconds = time.perf_counter() - started
    predicted = model.predict(crowd.X_test)
    measures = _posterior_measures(model.posterior_, model.confidence_, crowd)
    if crowd.confusion is not None and hasattr(model, "confusion_"):
        measures["cm_error"] = confusion_error(model.confusion_, crowd.confusion)
    return {
        "method": name,
        "seed": seed,
        "accuracy": float(np.mean(predicted == crowd.y_test)),
        "balanced_accuracy": balanced_accuracy(
            predicted.astype(np.int64), crowd.y_test.astype(np.int64), crowd.table.n_classes
        ),
        **measures,
        "seconds": round(seconds, 1),
        "settings": settings,
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def aggregate(name: str, crowd: Crowd, seed: int) -> dict[str, Any]:
    fitted = at.aggregation.make(name, random_state=seed).fit(crowd.table)
    return {"method": name, "seed": seed} | _posterior_measures(
        fitted.posterior_, fitted.confidence_, crowd
    )


def _posterior_measures(
    posterior: np.ndarray, confidence: np.ndarray, crowd: Crowd
) -> dict[str, Any]:
    return {
        "posterior_accuracy": float(np.mean(posterior.argmax(axis=1) == crowd.y)),
        "calibration_error": calibration_error(posterior, crowd.y, confidence=confidence),
    }


def show(name: str, runs: list[dict[str, Any]]) -> None:
    columns = (
        "accuracy",
        "balanced_accuracy",
        "posterior_accuracy",
        "calibration_error",
        "cm_error",
        "seconds",
    )
    print(f"\n{name}, mean over {len({r['seed'] for r in runs})} (lowest)\n")
    print("| method | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for method in dict.fromkeys(r["method"] for r in runs):
        own = [r for r in runs if r["method"] == method]
        cells = [_cell(column, [r.get(column) for r in own]) for column in columns]
        print(f"| {method} | " + " | ".join(cells) + " |")
    ran = {r["method"] for r in runs}
    if name == "sentiment" and ran >= {"auto", "vanilla", "dawid-skene"}:
        _compare(runs, "posterior_accuracy", "dawid-skene")
        _compare(runs, "accuracy", "vanilla")


def _cell(column: str, values: list[Any]) -> str:
    if None in values:
        return ""
    if column == "seconds":
        return f"{np.mean(values):.1f}"
    lowest = f" ({min(values):.3f})" if "accuracy" in column else ""
    return f"{np.mean(values):.3f}{lowest}"


def _compare(runs: list[dict[str, Any]], measure: str, other: str) -> None:
    ours, theirs = (
        [r[measure] for r in runs if r["method"] == method] for method in ("auto", other)
    )
    p = ttest_rel(ours, theirs, alternative="less").pvalue
    gain = np.mean(np.subtract(ours, theirs))
    print(f"\n{measure}: auto {gain:+.4f} against {other}; p = {p:.3f} for lower (paired t-test)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--methods", help="methods to run, if not all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--show", type=Path, nargs="+")
    options = parser.parse_args()
    if options.show:
        lines = [line for path in options.show for line in path.read_text().splitlines()]
        runs = [json.loads(line) for line in lines]
        for name in dict.fromkeys(r["experiment"] for r in runs):
            show(name, [r for r in runs if r["experiment"] == name])
        return
    for name in options.only.split(","):
        runs = []
        for seed, crowd in SETS[name](options.data, options.seeds):
            methods = options.methods.split(",") if options.methods else COMPARED[name]
            found = [run(method, crowd, seed, options.device) for method in methods]
            if crowd.table.labels_per_item().max() > 1 and not options.methods:
                found += [aggregate(other, crowd, seed) for other in ("dawid-skene", "majority")]
            runs += [{"experiment": name} | result for result in found]
            if options.out is not None:
                with options.out.open("a") as file:
                    file.writelines(json.dumps(r) + "\n" for r in runs[-len(found) :])
        show(name, runs)


if __name__ == "__main__":
    main()
