"""Annotators whose errors depend on the item: `item-dependent` beside `crossfit`.

usage: python benchmarks/item_dependent.py [--data DIR] [--only gaussian,digits,labelme]
                                           [--seeds 2] [--out FILE] [--show FILE]

    gaussian  2,000 items of five classes; the best classifier is correct in .8
    digits    600 digits, 64 features, ten classes
    labelme   1,000 images (VGG features), eight classes

Each annotator is correct in .85 outside a region that holds half of the items, and in .1 or by
chance inside. Even seeds have half-spaces and guesses, odd seeds balls and systematic errors. On
the constant crowds annotators have the mean of both matrices everywhere. Both methods start from
votes and train for fewer epochs than by default. Writes one JSON line per
crowd, skips those that the file has, and prints the table; `--show` prints only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import annotrace as at
from annotrace.simulate import (
    failing_regions,
    gaussian_features,
    hammer_spammers,
    pairwise_flippers,
    simulate_labels,
    simulate_regional_labels,
)

FAMILIES = ("gaussian", "digits", "labelme")
SIZES = ((5, 2), (20, 3), (50, 5), (5, 1), (20, 1))
"""Annotators, and labels per item."""

SETTINGS = {"init": "votes", "n_iter": 2, "epochs": 15, "mixup": 1.0}
"""Of both methods: a fit takes a tenth of the time that it takes at the defaults."""

SKILL, FAILING_SKILL, SHARE = 0.85, 0.1, 0.5


class Items(NamedTuple):
    """Features and true classes."""

    X: np.ndarray
    y: np.ndarray
    n_classes: int


def items_of(family: str, seed: int, data: Path) -> Items:
    """Return the items of a family."""
    rng = np.random.default_rng(seed)
    if family == "gaussian":
        y = rng.integers(0, 5, 2000)
        return Items(gaussian_features(y, 5, accuracy=0.8, random_state=rng), y, 5)
    if family == "labelme":
        z = np.load(data / "crowd" / "labelme.npz")
        return Items(z["vgg_train"].reshape(len(z["y_train"]), -1), z["y_train"], 8)
    train, _ = at.data.load_digits().split(1400)
    some = rng.permutation(1400)[:600]
    return Items(train.X[some], np.asarray(train.y)[some], 10)


def labels_of(
    items: Items, n_annotators: int, labels_per_item: int, kind: str, seed: int
) -> at.LabelTable:
    """Return simulated labels; `kind` is "regions" or "constant"."""
    rng = np.random.default_rng([seed, n_annotators, labels_per_item])
    able = pairwise_flippers(n_annotators, items.n_classes, SKILL, rng)
    if seed % 2:
        failing = pairwise_flippers(n_annotators, items.n_classes, FAILING_SKILL, rng)
    else:
        failing = hammer_spammers(n_annotators, items.n_classes, 0.0, rng)
    drawn = {"labels_per_item": labels_per_item, "random_state": rng}
    if kind == "constant":
        return simulate_labels(items.y, (1 - SHARE) * able + SHARE * failing, **drawn)
    shape = "ball" if seed % 2 else "half-space"
    regions = failing_regions(items.X, n_annotators, share=SHARE, shape=shape, random_state=rng)
    return simulate_regional_labels(items.y, able, failing, regions, **drawn)


def measure(method: str, items: Items, table: at.LabelTable, seed: int) -> dict[str, Any]:
    """Fit a method; return the accuracy of its posterior, and the time it took."""
    started = time.perf_counter()
    model = at.make(method, random_state=seed, **SETTINGS).fit(items.X, table)
    seconds = round(time.perf_counter() - started, 1)
    accuracy = float(np.mean(model.posterior_.argmax(axis=1) == items.y))
    found = {"strength": model.strength_, "gain": model.gain_} if "item" in method else {}
    return {"accuracy": round(accuracy, 4), "seconds": seconds, **found}


def crowds(families: list[str], seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the description of every crowd."""
    for seed in range(10, 10 + seeds):
        for n_annotators, labels_per_item in SIZES:
            for family in families:
                for kind in ("regions", "constant"):
                    yield {
                        "family": family,
                        "kind": kind,
                        "annotators": n_annotators,
                        "labels_per_item": labels_per_item,
                        "seed": seed,
                    }


def run(crowd: dict[str, Any], data: Path) -> dict[str, Any]:
    """Fit both methods to one crowd."""
    items = items_of(crowd["family"], crowd["seed"], data)
    sizes = crowd["annotators"], crowd["labels_per_item"]
    table = labels_of(items, *sizes, crowd["kind"], crowd["seed"])
    methods = ("crossfit", "item-dependent")
    return crowd | {name: measure(name, items, table, crowd["seed"]) for name in methods}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a file, none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def summarize(runs: list[dict[str, Any]]) -> str:
    """Return a table of accuracies, in points: mean, gain, and the worst gain of a crowd."""
    lines = [f"{'family':<10}{'kind':<10}{'crossfit':>9}{'item-dep.':>10}{'gain':>7}{'worst':>7}"]
    for family in (*FAMILIES, "all"):
        for kind in ("regions", "constant"):
            some = [r for r in runs if r["kind"] == kind and family in (r["family"], "all")]
            if some:
                plain, own = (
                    100 * np.array([r[name]["accuracy"] for r in some])
                    for name in ("crossfit", "item-dependent")
                )
                gain = own - plain
                figures = f"{plain.mean():9.1f}{own.mean():10.1f}{gain.mean():+7.2f}"
                lines.append(f"{family:<10}{kind:<10}{figures}{gain.min():+7.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--only", default=",".join(FAMILIES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("item_dependent.jsonl"))
    parser.add_argument("--show", type=Path)
    given = parser.parse_args()
    if given.show is None:
        identity = ("family", "kind", "annotators", "labels_per_item", "seed")
        done = {tuple(row[name] for name in identity) for row in read(given.out)}
        for crowd in crowds(given.only.split(","), given.seeds):
            if tuple(crowd.values()) not in done:
                line = json.dumps(run(crowd, given.data))
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
                print(line, flush=True)
    print(summarize(read(given.show or given.out)))


if __name__ == "__main__":
    main()
