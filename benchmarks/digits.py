"""Every method on scikit-learn's digits, side by side, one core.

usage: python benchmarks/digits.py [--skill 0.35] [--draws 5] [--labels 1] [--out FILE] [METHOD ...]

1,400 training items, 397 test items; five pairwise flippers, drawn so that their mean confusion
matrix is diagonally dominant (the first seeds that qualify, in order). A method is a short name,
followed by "@paper" for the published settings. Writes one JSON line per run and prints a table.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import annotrace as at
from annotrace.data.labelled import LabelledSet
from annotrace.diagnosis import confusion_error, dominant_draws
from annotrace.methods import list_methods
from annotrace.simulate import pairwise_flippers, simulate_labels


def run(
    name: str, train: LabelledSet, test: LabelledSet, crowd: np.ndarray, seed: int, labels: int
) -> dict[str, Any]:
    method, _, protocol = name.partition("@")
    table = simulate_labels(train.y, crowd, labels_per_item=labels, random_state=seed)
    settings: dict[str, Any] = {"protocol": protocol} if protocol else {}
    given = {"confusion": crowd} if method == "oracle" else {}
    started = time.perf_counter()
    model = at.make(method, random_state=seed, **settings, **given).fit(train.X, table)
    seconds = time.perf_counter() - started
    estimated = hasattr(model, "confusion_")
    best = min((e.held_out for e in model.history_ if e.held_out is not None), default=None)
    return {
        "experiment": "digits",
        "method": name,
        "crowd": "pairwise-flippers",
        "density": labels,
        "seed": seed,
        "accuracy": model.score(test.X, test.y),
        "posterior_accuracy": float(np.mean(model.posterior_.argmax(1) == train.y)),
        "cm_error": confusion_error(model.confusion_, crowd) if estimated else None,
        "label_nll": best,
        "seconds": round(seconds, 2),
        "settings": settings,
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def show(runs: list[dict[str, Any]]) -> None:
    print("| method | accuracy | lowest | posterior | CM error x 100 | seconds |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in dict.fromkeys(result["method"] for result in runs):
        own = [result for result in runs if result["method"] == name]
        accuracy = [result["accuracy"] for result in own]
        errors = [result["cm_error"] for result in own]
        error = "" if None in errors else f"{100 * np.mean(errors):.1f}"
        posterior = np.mean([result["posterior_accuracy"] for result in own])
        seconds = np.mean([result["seconds"] for result in own])
        print(
            f"| {name} | {np.mean(accuracy):.3f} | {min(accuracy):.3f} | {posterior:.3f} "
            f"| {error} | {seconds:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    # "auto" is crossfit.
    every = [method.name for method in list_methods() if method.name != "auto"]
    parser.add_argument("methods", nargs="*", default=[*every, "trace@paper"])
    parser.add_argument("--skill", type=float, default=0.35)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--labels", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    train, test = at.data.load_digits().split(1400)
    runs = []
    draw = partial(pairwise_flippers, 5, 10, options.skill)
    for seed, crowd in dominant_draws(draw, options.draws):
        for name in options.methods:
            result = run(name, train, test, crowd, seed, options.labels) | {"skill": options.skill}
            runs.append(result)
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(result) + "\n")
    show(runs)


if __name__ == "__main__":
    main()
