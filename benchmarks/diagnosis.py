"""Verdicts on crowds whose labels identify the true classes, and on crowds whose labels do not.

usage: python benchmarks/diagnosis.py [--method trace] [--seed 1000] [--out results/diagnosis.jsonl]

Forty simulated crowds on Gaussian features: 20 whose true mean matrix is diagonally dominant by
.15 or more, with many labels; 20 with a margin within .03 of zero, too few labels, two groups of
annotators who see different classes, or spammers alone, five of each. Appends one JSON line per
crowd and prints a table. Thresholds were set on seeds below 200, so start at 1000.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import annotrace as at
from annotrace.diagnosis import dominance_margins
from annotrace.simulate import (
    gaussian_features,
    hammer_spammers,
    pairwise_flippers,
    simulate_labels,
)

Rng = np.random.Generator
SKILLS = (0.45, 0.85)


class Crowd(NamedTuple):
    """Features, labels and the true matrices."""

    X: np.ndarray
    table: at.LabelTable
    confusion: np.ndarray


def annotators(n_annotators: int, n_classes: int, rng: Rng) -> np.ndarray:
    """Draw annotators of uneven skill, a third each with three kinds of errors."""
    own = []
    for place in range(n_annotators):
        skill = rng.uniform(*SKILLS)
        if place % 3 == 0:
            own.append(hammer_spammers(1, n_classes, skill, rng))
        elif place % 3 == 1:
            own.append(pairwise_flippers(1, n_classes, skill, rng))
        else:
            errors = rng.dirichlet(np.ones(n_classes), (1, n_classes))
            own.append(skill * np.eye(n_classes) + (1 - skill) * errors)
    return np.concatenate(own)


def sizes(rng: Rng) -> tuple[int, int]:
    """Draw a number of annotators and of classes."""
    return int(rng.integers(6, 31)), int(rng.integers(3, 8))


def label(confusion: np.ndarray, rng: Rng, n_items: int = 2000, per_item: int = 3) -> Crowd:
    n_classes = confusion.shape[1]
    truth = rng.integers(0, n_classes, n_items)
    X = gaussian_features(truth, n_classes, accuracy=0.8, random_state=rng)
    table = simulate_labels(truth, confusion, labels_per_item=per_item, random_state=rng)
    return Crowd(X, table, confusion)


def dominant(rng: Rng) -> np.ndarray:
    while True:
        confusion = annotators(*sizes(rng), rng)
        if dominance_margins(confusion.mean(axis=0)).min() >= 0.15:
            return confusion


def lessen(confusion: np.ndarray, lead: float, rng: Rng) -> np.ndarray:
    """Report one class as another nearly as often as the other itself is reported.

    All annotators do so alike, or some hardly ever and others nearly always.
    """
    n_annotators, n_classes, _ = confusion.shape
    named, mistaken = rng.choice(n_classes, 2, replace=False)
    wanted = confusion.mean(axis=0)[named, named] - lead
    reach = rng.choice([0.0, 0.8]) * min(wanted, 1 - wanted)
    noise = rng.uniform(-reach, reach, n_annotators)
    called = (wanted + noise - noise.mean()).clip(0, 1)
    others = confusion[:, mistaken] * (np.arange(n_classes) != named)
    others *= ((1 - called) / others.sum(axis=1))[:, None]
    confusion[:, mistaken] = others + called[:, None] * np.eye(n_classes)[named]
    return confusion


def learnable(rng: Rng) -> Crowd:
    while True:
        confusion = lessen(dominant(rng), rng.uniform(0.15, 0.6), rng)
        if dominance_margins(confusion.mean(axis=0)).min() >= 0.15:
            return label(confusion, rng)


def no_margin(rng: Rng) -> Crowd:
    return label(lessen(dominant(rng), rng.uniform(-0.03, 0.03), rng), rng)


def few_labels(rng: Rng) -> Crowd:
    """Five items per class with one label each."""
    confusion = dominant(rng)
    return label(confusion, rng, n_items=5 * confusion.shape[1], per_item=1)


def disconnected(rng: Rng) -> Crowd:
    """Two groups of annotators who label items of different classes."""
    confusion = dominant(rng)
    n_annotators, n_classes, _ = confusion.shape
    whole = label(confusion, rng)
    truth = whole.table.truth
    assert truth is not None
    first = truth < n_classes // 2
    groups = np.arange(n_annotators) < n_annotators // 2
    item, annotator, said = [], [], []
    for own, who in ((np.flatnonzero(first), groups), (np.flatnonzero(~first), ~groups)):
        part = simulate_labels(truth[own], confusion[who], labels_per_item=3, random_state=rng)
        item.append(own[part.item])
        annotator.append(np.flatnonzero(who)[part.annotator])
        said.append(part.label)
    table = at.LabelTable.from_codes(
        *(np.concatenate(codes) for codes in (item, annotator, said)),
        n_items=len(truth),
        n_annotators=n_annotators,
        n_classes=n_classes,
        truth=truth,
    )
    return Crowd(whole.X, table, confusion)


def spammers(rng: Rng) -> Crowd:
    """Annotators who answer independently of the item."""
    n_annotators, n_classes = sizes(rng)
    marginals = rng.dirichlet(np.ones(n_classes), n_annotators)
    return label(np.repeat(marginals[:, None], n_classes, axis=1), rng)


KINDS: dict[str, tuple[int, Callable[[Rng], Crowd]]] = {
    "dominant, many labels": (20, learnable),
    "margin within .03": (5, no_margin),
    "too few labels": (5, few_labels),
    "disconnected": (5, disconnected),
    "spammers alone": (5, spammers),
}


def run(method: str, kind: str, seed: int) -> dict[str, Any]:
    crowd = KINDS[kind][1](np.random.default_rng([seed, list(KINDS).index(kind)]))
    started = time.perf_counter()
    model = at.make(method, random_state=seed).fit(crowd.X, crowd.table)
    fitted = time.perf_counter()
    diagnosis = model.diagnosis_
    return {
        "experiment": "diagnosis",
        "method": method,
        "crowd": kind,
        "seed": seed,
        "verdict": diagnosis.verdict,
        "reasons": list(diagnosis.reason_texts),
        "true_margin": float(dominance_margins(crowd.confusion.mean(axis=0)).min()),
        "margin": float(diagnosis.margins.value.min()),
        "margin_low": float(diagnosis.margins.low.min()),
        "information_low": float(diagnosis.information.low),
        "separation": diagnosis.overlap.separation,
        "posterior_accuracy": float(np.mean(model.posterior_.argmax(1) == crowd.table.truth)),
        "seconds": round(fitted - started, 2),
        "diagnosis_seconds": round(time.perf_counter() - fitted, 2),
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def show(results: list[dict[str, Any]]) -> None:
    verdicts = ("identified", "weak", "not identified")
    print("| crowd | " + " | ".join(verdicts) + " |\n|---|---:|---:|---:|")
    for kind in KINDS:
        own = [result["verdict"] for result in results if result["crowd"] == kind]
        print(f"| {kind} | " + " | ".join(str(own.count(verdict)) for verdict in verdicts) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--seed", type=int, default=1000, help="of the first crowd of each kind")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for kind, (n_crowds, _) in KINDS.items():
        for seed in range(options.seed, options.seed + n_crowds):
            results.append(run(options.method, kind, seed))
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
