"""What the recipe gives each method that trains a network by gradient descent.

usage: python benchmarks/recipe.py [--data DIR] [--only labelme,flippers,hammers] [--seeds 3]
                                   [--out results/recipe.jsonl] [--show FILE]

    labelme    1,000 images (VGG features), 59 annotators, 2.5 labels per item; test part of 1,188
    flippers   digits, one label per item by five pairwise flippers at .4, dominant draws
    hammers    digits, two labels per item by five hammer-spammers at .4

Every method runs plainly and with the default `Recipe`, all else at its defaults. Nothing is chosen
by truth. Appends one JSON line per run and skips runs that are there; prints a table.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from small_data import Crowd, digits_crowd, labelme

import annotrace as at
from annotrace.diagnosis import dominant_draws
from annotrace.simulate import hammer_spammers, pairwise_flippers

METHODS = ("trace", "gem", "mbem", "single-cm", "vanilla", "geo-crowd-layer")
RECIPES = ("none", "default")


def flippers(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    for seed, confusion in dominant_draws(partial(pairwise_flippers, 5, 10, 0.4), seeds):
        yield seed, digits_crowd(confusion, seed, labels_per_item=1)


def hammers(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    for seed in range(seeds):
        confusion = hammer_spammers(5, 10, 0.4, random_state=seed)
        yield seed, digits_crowd(confusion, seed, labels_per_item=2)


SETS: dict[str, Callable[[Path, int], Iterator[tuple[int, Crowd]]]] = {
    function.__name__: function for function in (labelme, flippers, hammers)
}


def run(method: str, recipe: str, crowd: Crowd, seed: int) -> dict[str, Any]:
    model = at.make(method, recipe=recipe, random_state=seed)
    started = time.perf_counter()
    model.fit(crowd.X, crowd.table)
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "accuracy": float(model.score(crowd.X_test, crowd.y_test)),
        "posterior_accuracy": float(np.mean(model.result_.estimate == crowd.y)),
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print accuracy and posterior accuracy, plain and with the recipe."""
    print(f"{'set':10}{'method':18}" + "".join(f"{r:>10}{'posterior':>11}" for r in RECIPES))
    for name in SETS:
        for method in METHODS:
            cells = []
            for recipe in RECIPES:
                of_cell = {"set": name, "method": method, "recipe": recipe}
                own = [r for r in results if of_cell.items() <= r.items()]
                for measure in ("accuracy", "posterior_accuracy"):
                    cells.append(np.mean([r[measure] for r in own]) if own else np.nan)
            print(f"{name:10}{method:18}" + "".join(f"{cell:10.3f} " for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/recipe.jsonl"))
    parser.add_argument("--show", type=Path)
    args = parser.parse_args()
    path = args.show or args.out
    lines = path.read_text().splitlines() if path.exists() else []
    results = [json.loads(line) for line in lines]
    if args.show is None:
        keys = ("set", "method", "recipe", "seed")
        done = {tuple(result[key] for key in keys) for result in results}
        for name in args.only.split(","):
            for seed, crowd in SETS[name](args.data, args.seeds):
                for method in METHODS:
                    for recipe in RECIPES:
                        cell = (name, method, recipe, seed)
                        if cell in done:
                            continue
                        outcome = run(method, recipe, crowd, seed)
                        results.append(dict(zip(keys, cell, strict=True)) | outcome)
                        with path.open("a") as file:
                            file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
