"""Where cross-fitted EM should learn from labels alone first, and whether it chooses so.

usage: python benchmarks/labels_or_features.py [--draws 2] [--seed 0] [--out FILE] [--show FILE]

Crowds of the fifteen families of the zoo (`zoo_families.py`) with simulated features, on which the
Bayes classifier has an accuracy of .6, .75 or .9. Each is fitted with `init="labels"`,
`init="trace"` and `init="auto"`, which chooses between these. Nothing was tuned on them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from zoo_families import FAMILIES, draw_crowd

import annotrace as at

INITS = ("labels", "trace", "auto")
ACCURACIES = (0.6, 0.75, 0.9)
N_NOISE = 10
"""Features that say nothing."""


def features_of(truth: np.ndarray, n_classes: int, accuracy: float, seed: int) -> np.ndarray:
    """Return informative features and noise, shape (n_items, n_classes + N_NOISE)."""
    informative = at.simulate.gaussian_features(
        truth, n_classes, accuracy=accuracy, random_state=seed
    )
    noise = np.random.default_rng(seed).normal(size=(len(truth), N_NOISE))
    return np.concatenate([informative, noise], axis=1).astype(np.float32)


def run(family: str, seed: int, accuracy: float) -> dict[str, Any]:
    crowd = draw_crowd(family, seed)
    table, truth = crowd.table, crowd.table.truth
    n_classes = table.n_classes
    X = features_of(truth, n_classes, accuracy, seed)
    y_test = np.random.default_rng(seed + 1).integers(n_classes, size=2000)
    X_test = features_of(y_test, n_classes, accuracy, seed + 1)
    found: dict[str, Any] = {"family": family, "seed": seed, "bayes": accuracy}
    found["labels_per_item"] = table.n_labels / table.n_items
    alone = at.aggregation.make(random_state=seed).fit(table)
    found["aggregation"] = float(np.mean(alone.posterior_.argmax(1) == truth))
    for init in INITS:
        started = time.perf_counter()
        model = at.CrossFittedEM(init=init, random_state=seed).fit(X, table)
        found[init] = {
            "posterior": float(np.mean(model.posterior_.argmax(1) == truth)),
            "classifier": float(np.mean(model.predict_proba(X_test).argmax(1) == y_test)),
            "seconds": round(time.perf_counter() - started, 1),
        }
    is_same = found["auto"]["posterior"] == found["labels"]["posterior"]
    return found | {"chosen": "labels" if is_same else "trace"}


def show(runs: list[dict[str, Any]]) -> None:
    print("| family | runs | aggregation | labels | trace | auto | chosen labels | worse by |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for family in [*dict.fromkeys(r["family"] for r in runs), "all"]:
        own = [r for r in runs if family in (r["family"], "all")]
        means = [np.mean([r["aggregation"] for r in own])]
        means += [np.mean([r[init]["posterior"] for r in own]) for init in INITS]
        chosen = np.mean([r["chosen"] == "labels" for r in own])
        lost = np.mean(
            [max(r[i]["posterior"] for i in INITS) - r["auto"]["posterior"] for r in own]
        )
        cells = " | ".join(f"{mean:.3f}" for mean in means)
        print(f"| {family} | {len(own)} | {cells} | {chosen:.2f} | {lost:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    if options.show:
        show([json.loads(line) for line in options.show.read_text().splitlines()])
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    runs = []
    for family in options.families.split(","):
        for seed in range(options.seed, options.seed + options.draws):
            for accuracy in ACCURACIES:
                runs.append(run(family, seed, accuracy))
                if options.out is not None:
                    with options.out.open("a") as file:
                        file.write(json.dumps(runs[-1]) + "\n")
    show(runs)


if __name__ == "__main__":
    main()
