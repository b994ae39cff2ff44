"""Whom the diagnosis flags: spammers, and one person with two names; and whom it should not.

usage: python benchmarks/flags.py [--crowds 60] [--seed 0] [--method hierarchical] [--out FILE]

    spammers  four of sixteen answer without looking, half of them always the same; the others know
              half of the items or more; 150 to 1,500 items of four labels, two to eight classes, of
              which one may be most items
    honest    nobody copies; items that mislead all, two who always say the same, two experts among
              weak annotators, or none of these
    copies    eight people right three times in four, and a spammer; one of the eight has a second
              name, which repeats four in five answers or all; three, four or six labels an item

Labels alone. Writes a JSON line a crowd, prints how many are flagged.
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
Told = dict[str, int]


def flagged(table: at.LabelTable, method: str, kind: str) -> np.ndarray:
    """Tell who has a flag of a kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = at.aggregation.make(method).fit(table).diagnosis_.flags
    return np.array([any(flag.startswith(kind) for flag in own) for own in flags])


def common(n_classes: int, most: float, rng: Rng) -> np.ndarray:
    """Draw how common classes are, the first having at least a share `most`."""
    rest = rng.dirichlet(np.full(n_classes, 3.0))
    return most * np.eye(n_classes)[0] + (1 - most) * rest


def spammers(rng: Rng, method: str) -> Told:
    n_classes = int(rng.integers(2, 9))
    shares = common(n_classes, rng.choice([0, 0.5, 0.8]), rng)
    truth = rng.choice(n_classes, int(rng.integers(150, 1500)), p=shares)
    good = [hammer_spammers(1, n_classes, s, rng)[0] for s in rng.uniform(0.5, 0.95, 12)]
    always = 0.95 * np.eye(n_classes)[[0, 0]] + 0.05 / n_classes
    habits = np.concatenate([always, rng.dirichlet(np.ones(n_classes), 2)])
    bad = np.repeat(habits[:, None], n_classes, axis=1)
    confusion = np.concatenate([np.stack(good), bad])
    found = flagged(
        simulate_labels(truth, confusion, labels_per_item=4, random_state=rng), method, "spammer"
    )
    return {"flagged": int(found[12:].sum()), "of": 4, "wrongly": int(found[:12].sum())}


def honest(rng: Rng, method: str) -> Told:
    n_classes, n_annotators = int(rng.integers(2, 9)), int(rng.integers(6, 31))
    make = (hammer_spammers, pairwise_flippers)[int(rng.integers(2))]
    confusion = make(n_annotators, n_classes, rng.uniform(0.55, 0.9), rng)
    kind = rng.choice(["plain", "hard", "constant", "experts"])
    if kind == "constant":
        confusion[:2] = 0.97 * np.eye(n_classes)[0] + 0.03 / n_classes
    if kind == "experts":
        confusion[:2] = 0.98 * np.eye(n_classes) + 0.02 / n_classes
    truth = rng.choice(n_classes, 1000, p=common(n_classes, 0, rng))
    per_item = int(rng.integers(2, 7))
    table = simulate_labels(truth, confusion, labels_per_item=per_item, random_state=rng)
    if kind == "hard":
        table = mislead(table, rng)
    return {"flagged": 0, "of": 0, "wrongly": int(flagged(table, method, "copies").sum())}


def mislead(table: at.LabelTable, rng: Rng) -> at.LabelTable:
    """Let a quarter of the items be called by one wrong name three times in five, by all."""
    wrong = (table.truth + rng.integers(1, table.n_classes, table.n_items)) % table.n_classes
    hard = rng.random(table.n_items) < 0.25
    misled = hard[table.item] & (rng.random(table.n_labels) < 0.6)
    label = np.where(misled, wrong[table.item], table.label)
    return at.LabelTable.from_codes(
        table.item,
        table.annotator,
        label,
        n_items=table.n_items,
        n_annotators=table.n_annotators,
        n_classes=table.n_classes,
    )


def copies(rng: Rng, method: str) -> Told:
    spammer = np.tile([0.7, 0.1, 0.1, 0.1], (1, 4, 1))
    confusion = np.concatenate([hammer_spammers(8, 4, 0.75, rng), spammer])
    truth = rng.choice(4, 800, p=[0.4, 0.3, 0.2, 0.1])
    per_item = int(rng.choice([3, 4, 6]))
    table = simulate_labels(truth, confusion, labels_per_item=per_item, random_state=rng)
    own = np.flatnonzero(table.annotator == 2)
    chances = confusion[2, truth[table.item[own]]].cumsum(axis=1)
    alone = (rng.random((len(own), 1)) > chances).sum(axis=1).clip(max=3)
    copied = rng.random(len(own)) < rng.choice([0.8, 1.0])
    joined = at.LabelTable.from_codes(
        np.append(table.item, table.item[own]),
        np.append(table.annotator, np.full(len(own), 9)),
        np.append(table.label, np.where(copied, table.label[own], alone)),
        n_classes=4,
    )
    found = flagged(joined, method, "copies")
    wrongly = int(found.sum() - found[[2, 9]].sum())
    return {"flagged": int(found[[2, 9]].all()), "of": 1, "wrongly": wrongly, "labels": per_item}


KINDS: dict[str, Callable[[Rng, str], Told]] = {
    function.__name__: function for function in (spammers, honest, copies)
}


def show(results: list[dict[str, Any]]) -> None:
    print("| crowds | number | flagged | of | wrongly flagged |\n|---|---:|---:|---:|---:|")
    for kind in KINDS:
        own = [result for result in results if result["crowd"] == kind]
        told = [sum(result[name] for result in own) for name in ("flagged", "of", "wrongly")]
        print(f"| {kind} | {len(own)} | " + " | ".join(map(str, told)) + " |")
    for labels in (3, 4, 6):
        own = [result for result in results if result.get("labels") == labels]
        found = sum(result["flagged"] for result in own)
        print(f"copies, {labels} labels an item: {found} of {len(own)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--crowds", type=int, default=60, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the first crowd of each kind")
    parser.add_argument("--method", default="hierarchical")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for place, (kind, run) in enumerate(KINDS.items()):
        for seed in range(options.seed, options.seed + options.crowds):
            told = run(np.random.default_rng([seed, place]), options.method)
            results.append({"experiment": "flags", "crowd": kind, "seed": seed, **told})
            results[-1] |= {"method": options.method, "versions": {"annotrace": at.__version__}}
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
