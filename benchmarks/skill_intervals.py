"""Coverage of 90 % intervals of skills and of cells, for annotators with few labels and many.

usage: python benchmarks/skill_intervals.py [--method trace] [--crowds 20] [--seed 0] [--out FILE]

Simulated crowds: 5 classes, 2,000 items, Gaussian features on which the best classifier has
accuracy .8, 50 annotators of skill .3 to .95 with 10 to 500 labels each. In a third of the crowds
errors are uniform over the other classes, in a third some errors are more frequent than others, and
in a third accuracies differ between classes too. Appends one JSON line per crowd, prints a table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import annotrace as at
from annotrace.diagnosis import skills
from annotrace.simulate import gaussian_features, simulate_labels

ITEMS, ANNOTATORS, CLASSES = 2000, 50, 5
FEW = 30
KINDS = ("uniform errors", "uneven errors", "uneven accuracies")


def annotators(kind: str, rng: np.random.Generator) -> np.ndarray:
    skill = rng.uniform(0.3, 0.95, ANNOTATORS)
    right = np.repeat(skill[:, None], CLASSES, axis=1)
    if kind == "uneven accuracies":
        right = (right + rng.normal(0, 0.1, right.shape)).clip(0.02, 0.98)
    errors = np.full((ANNOTATORS, CLASSES, CLASSES), 1.0)
    if kind != "uniform errors":
        errors = rng.gamma(1.0, size=errors.shape)
    errors *= ~np.eye(CLASSES, dtype=bool)
    errors *= ((1 - right) / errors.sum(axis=2))[:, :, None]
    return errors + right[:, :, None] * np.eye(CLASSES)


def run(method: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 5])
    kind = KINDS[seed % len(KINDS)]
    confusion = annotators(kind, rng)
    truth = rng.integers(0, CLASSES, ITEMS)
    X = gaussian_features(truth, CLASSES, accuracy=0.8, random_state=rng)
    # Log-uniform: as many annotators with 10 to 20 labels as with 250 to 500.
    n_labels = np.exp(rng.uniform(np.log(10), np.log(500), ANNOTATORS)).round().astype(int)
    table = simulate_labels(truth, confusion, labels_per_annotator=n_labels, random_state=rng)
    started = time.perf_counter()
    model = at.make(method, random_state=seed).fit(X, table)
    fitted = time.perf_counter()
    low, high = model.result_.annotators.skill_interval(0.9)
    seconds = time.perf_counter() - fitted
    covered = (low <= skills(confusion)) & (skills(confusion) <= high)
    few = n_labels < FEW
    cells = (model.confusion_low_ <= confusion) & (confusion <= model.confusion_high_)
    return {
        "experiment": "skill_intervals",
        "method": method,
        "crowd": kind,
        "seed": seed,
        "labels": table.n_labels,
        "covered": int(covered.sum()),
        "annotators": len(covered),
        "covered_few": int(covered[few].sum()),
        "annotators_few": int(few.sum()),
        "cells_covered": float(cells.mean()),
        "width": float((high - low).mean()),
        "width_few": float((high - low)[few].mean()),
        "posterior_accuracy": float(np.mean(model.posterior_.argmax(1) == truth)),
        "seconds": round(fitted - started, 2),
        "diagnosis_seconds": round(seconds, 2),
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def show(results: list[dict[str, Any]]) -> None:
    print("| crowds | covered | with fewer than 30 labels | cells | width | width, few labels |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind in (*KINDS, "all"):
        own = [result for result in results if kind in (result["crowd"], "all")]
        if own:
            total = {name: sum(result[name] for result in own) for name in own[0] if name in SUMS}
            print(
                f"| {kind} | {total['covered'] / total['annotators']:.3f} "
                f"| {total['covered_few'] / total['annotators_few']:.3f} "
                f"| {total['cells_covered'] / len(own):.3f} | {total['width'] / len(own):.3f} "
                f"| {total['width_few'] / len(own):.3f} |"
            )


SUMS = (
    *("covered", "annotators", "covered_few", "annotators_few"),
    *("cells_covered", "width", "width_few"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--crowds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first crowd")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for seed in range(options.seed, options.seed + options.crowds):
        results.append(run(options.method, seed))
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
