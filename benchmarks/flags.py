"""Flags of annotators: who is found, and who is flagged wrongly.

usage: python benchmarks/flags.py [--crowds 60] [--seed 1000] [--method hierarchical] [--out FILE]

    spammers      4 of 16 annotators answer independently of the item, two of them always the same;
                  150 to 1,500 items with four labels, two to eight classes, one of them frequent
    adversaries   2 of 16 annotators report the next class
    honest        all annotators are correct more often than by chance; in some crowds a quarter of
                  the items misleads everybody, or two experts work among weak annotators

From labels alone. Appends one JSON line per crowd and prints a table. The rule for spammers was
chosen on seeds 0 to 199, so start at 1000.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import annotrace as at
from annotrace.simulate import hammer_spammers, pairwise_flippers, simulate_labels

Rng = np.random.Generator
Found = dict[str, int]


def flagged(table: at.LabelTable, method: str, *kinds: str) -> np.ndarray:
    """Return which annotators have a flag of some kinds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = at.aggregation.make(method).fit(table).diagnosis_.flags
    return np.array([any(flag.kind in kinds for flag in own) for own in flags])


def class_shares(n_classes: int, most: float, rng: Rng) -> np.ndarray:
    """Draw class shares; the first class has at least the share `most`."""
    rest = rng.dirichlet(np.full(n_classes, 3.0))
    return most * np.eye(n_classes)[0] + (1 - most) * rest


def crowd_with(bad: np.ndarray, rng: Rng) -> at.LabelTable:
    """Label items by 16 annotators, of whom the last are bad."""
    n_classes = bad.shape[1]
    shares = class_shares(n_classes, rng.choice([0, 0.5, 0.8]), rng)
    truth = rng.choice(n_classes, int(rng.integers(150, 1500)), p=shares)
    skills = rng.uniform(0.5, 0.95, 16 - len(bad))
    good = [hammer_spammers(1, n_classes, skill, rng)[0] for skill in skills]
    confusion = np.concatenate([np.stack(good), bad])
    return simulate_labels(truth, confusion, labels_per_item=4, random_state=rng)


def spammers(rng: Rng, method: str) -> Found:
    n_classes = int(rng.integers(2, 9))
    always = 0.95 * np.eye(n_classes)[[0, 0]] + 0.05 / n_classes
    marginals = np.concatenate([always, rng.dirichlet(np.ones(n_classes), 2)])
    table = crowd_with(np.repeat(marginals[:, None], n_classes, axis=1), rng)
    found = flagged(table, method, "spammer")
    return {"flagged": int(found[12:].sum()), "of": 4, "wrongly": int(found[:12].sum())}


def adversaries(rng: Rng, method: str) -> Found:
    n_classes = int(rng.integers(2, 9))
    bad = 0.8 * np.roll(np.eye(n_classes), 1, axis=1) + 0.2 / n_classes
    found = flagged(crowd_with(np.stack([bad, bad]), rng), method, "adversarial")
    return {"flagged": int(found[14:].sum()), "of": 2, "wrongly": int(found[:14].sum())}


def honest(rng: Rng, method: str) -> Found:
    n_classes, n_annotators = int(rng.integers(2, 9)), int(rng.integers(6, 31))
    make = (hammer_spammers, pairwise_flippers)[int(rng.integers(2))]
    confusion = make(n_annotators, n_classes, rng.uniform(0.55, 0.9), rng)
    kind = rng.choice(["plain", "hard items", "experts"])
    if kind == "experts":
        confusion[:2] = 0.98 * np.eye(n_classes) + 0.02 / n_classes
    truth = rng.choice(n_classes, 1000, p=class_shares(n_classes, 0, rng))
    per_item = int(rng.integers(2, 7))
    table = simulate_labels(truth, confusion, labels_per_item=per_item, random_state=rng)
    if kind == "hard items":
        table = mislead(table, rng)
    wrongly = flagged(table, method, "spammer", "adversarial")
    return {"flagged": 0, "of": 0, "wrongly": int(wrongly.sum())}


def mislead(table: at.LabelTable, rng: Rng) -> at.LabelTable:
    """Replace three in five labels of a quarter of the items by one wrong class per item."""
    wrong = (table.truth + rng.integers(1, table.n_classes, table.n_items)) % table.n_classes
    hard = rng.random(table.n_items) < 0.25
    misled = hard[table.item] & (rng.random(table.n_labels) < 0.6)
    return at.LabelTable.from_codes(
        table.item,
        table.annotator,
        np.where(misled, wrong[table.item], table.label),
        n_items=table.n_items,
        n_annotators=table.n_annotators,
        n_classes=table.n_classes,
    )


KINDS: dict[str, Callable[[Rng, str], Found]] = {
    function.__name__: function for function in (spammers, adversaries, honest)
}


def show(results: list[dict[str, Any]]) -> None:
    print("| crowds | number | flagged | of | wrongly flagged |\n|---|---:|---:|---:|---:|")
    for kind in KINDS:
        own = [result for result in results if result["crowd"] == kind]
        totals = [sum(result[name] for result in own) for name in ("flagged", "of", "wrongly")]
        print(f"| {kind} | {len(own)} | " + " | ".join(map(str, totals)) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--crowds", type=int, default=60, help="of each kind")
    parser.add_argument("--seed", type=int, default=1000, help="of the first crowd of each kind")
    parser.add_argument("--method", default="hierarchical")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for place, (kind, run) in enumerate(KINDS.items()):
        for seed in range(options.seed, options.seed + options.crowds):
            found = run(np.random.default_rng([seed, place]), options.method)
            results.append({"experiment": "flags", "crowd": kind, "seed": seed, **found})
            results[-1] |= {"method": options.method, "versions": {"annotrace": at.__version__}}
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
