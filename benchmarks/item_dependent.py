"""Annotators whose errors depend on the item: `item-dependent` beside `crossfit`.

usage: python benchmarks/item_dependent.py [--data DIR] [--only gaussian,digits,labelme]
                                           [--repeats 1] [--out FILE] [--show FILE]

    gaussian  2,000 items of five classes; the best classifier is correct in .8
    digits    600 digits, 64 features, ten classes
    labelme   1,000 images (VGG features), eight classes

Each annotator is correct in .85 outside a region that holds half of the items, and in .1 or by
chance inside. Even seeds have half-spaces and guesses, odd seeds balls and systematic errors. On
the constant crowds annotators have the mean of both matrices everywhere. Both methods start from
votes and train for fewer epochs than by default.

Where `item-dependent` finds that errors depend on the item, it trains networks in twice as many
iterations; `crossfit` then has as many from the start. Where it finds no dependence, both methods
do the same, and only one is fitted. `same_settings` is `crossfit` with as many iterations as it
is asked for. The ceiling is the posterior by the true matrices and regions
beside the out-of-fold predictions of `crossfit`.

Writes one JSON line per crowd, skips those that the file has, and prints the table; `--show` prints
only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import annotrace as at
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.temperature import fit_temperature, tempered_e_step
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

SETTINGS = {"init": "votes", "epochs": 15, "mixup": 1.0}
N_ITER = 2
"""Both methods take a tenth of the time that they take at the defaults."""

FIRST_SEED = 20
"""Seeds 10 to 13 were used to develop the method."""

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


class Crowd(NamedTuple):
    """Simulated labels, and what they were drawn from.

    Attributes
    ----------
    table : LabelTable
    matrices : ndarray of shape (2 * n_annotators, n_classes, n_classes)
        Outside of regions, then inside.
    inside : ndarray of bool, shape (n_labels,)
        Whether the label's item is in its annotator's region.
    """

    table: at.LabelTable
    matrices: np.ndarray
    inside: np.ndarray


def labels_of(items: Items, n_annotators: int, labels_per_item: int, kind: str, seed: int) -> Crowd:
    """Simulate labels; `kind` is "regions" or "constant"."""
    rng = np.random.default_rng([seed, n_annotators, labels_per_item])
    able = pairwise_flippers(n_annotators, items.n_classes, SKILL, rng)
    if seed % 2:
        failing = pairwise_flippers(n_annotators, items.n_classes, FAILING_SKILL, rng)
    else:
        failing = hammer_spammers(n_annotators, items.n_classes, 0.0, rng)
    drawn = {"labels_per_item": labels_per_item, "random_state": rng}
    if kind == "constant":
        mean = (1 - SHARE) * able + SHARE * failing
        table = simulate_labels(items.y, mean, **drawn)
        return Crowd(table, np.concatenate([mean, mean]), np.zeros(table.n_labels, bool))
    shape = "ball" if seed % 2 else "half-space"
    regions = failing_regions(items.X, n_annotators, share=SHARE, shape=shape, random_state=rng)
    table = simulate_regional_labels(items.y, able, failing, regions, **drawn)
    inside = regions[table.annotator, table.item]
    return Crowd(table, np.concatenate([able, failing]), inside)


def accuracy(posterior: np.ndarray, items: Items) -> float:
    """Return the share of items whose most probable class is the true one."""
    return round(float(np.mean(posterior.argmax(axis=1) == items.y)), 4)


def ceiling(items: Items, crowd: Crowd, proba: np.ndarray) -> float:
    """Return the accuracy of the posterior by true matrices and regions, and a classifier.

    Parameters
    ----------
    items, crowd
    proba : ndarray of shape (n_items, n_classes)
        Out-of-fold predictions, which are calibrated to the labels.
    """
    table, n_classes = crowd.table, items.n_classes
    # Inside their regions annotators are others, who come after all.
    answering = table.annotator + table.n_annotators * crowd.inside
    problem = CrowdProblem(
        at.LabelTable.from_codes(
            table.item,
            answering,
            table.label,
            n_items=table.n_items,
            n_annotators=2 * table.n_annotators,
            n_classes=n_classes,
        )
    )
    log_matrices = problem.tensor(np.log(crowd.matrices.clip(1e-4)))
    likelihood = problem.labels.sum_matrices(log_matrices)
    logits = problem.tensor(np.log(proba.clip(1e-12)))
    temperature, _ = fit_temperature(problem, logits, likelihood)
    posterior, _ = tempered_e_step(problem, logits, likelihood, temperature)
    return accuracy(posterior.numpy(), items)


def crowds(families: list[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the description of every crowd; half of the seeds are even, whatever the family."""
    for repeat in range(repeats):
        for kind in ("regions", "constant"):
            for number, (n_annotators, labels_per_item) in enumerate(SIZES):
                for family in families:
                    parity = (number + FAMILIES.index(family)) % 2
                    yield {
                        "family": family,
                        "kind": kind,
                        "annotators": n_annotators,
                        "labels_per_item": labels_per_item,
                        "seed": FIRST_SEED + 2 * repeat + parity,
                    }


def run(description: dict[str, Any], data: Path) -> dict[str, Any]:
    """Fit both methods to one crowd."""
    seed = description["seed"]
    items = items_of(description["family"], seed, data)
    sizes = description["annotators"], description["labels_per_item"]
    crowd = labels_of(items, *sizes, description["kind"], seed)

    def fit(method: str, n_iter: int) -> Any:
        settings = SETTINGS | {"n_iter": n_iter, "random_state": seed}
        return at.make(method, **settings).fit(items.X, crowd.table)

    own = fit("item-dependent", N_ITER)
    plain = same = own
    if own.strength_ is not None:
        plain, same = (fit("crossfit", n_iter) for n_iter in (2 * N_ITER, N_ITER))
    return description | {
        "crossfit": accuracy(plain.posterior_, items),
        "same_settings": accuracy(same.posterior_, items),
        "item-dependent": accuracy(own.posterior_, items),
        "ceiling": ceiling(items, crowd, plain.oof_proba_),
        "strength": own.strength_,
        "gain": round(own.gain_, 4),
    }


def read(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a file, none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def summarize(runs: list[dict[str, Any]]) -> str:
    """Return a table of mean accuracies in points, gains, and the smallest gain of a crowd."""
    columns = ("crossfit", "item-dependent", "ceiling")
    lines = ["".join(f"{name:>18}" for name in ("", *columns, "gain", "smallest", "crowds"))]
    for family in (*FAMILIES, "all"):
        for kind in ("regions", "constant"):
            some = [r for r in runs if r["kind"] == kind and family in (r["family"], "all")]
            if some:
                plain, own, ceiling = (100 * np.array([r[name] for r in some]) for name in columns)
                means = (plain.mean(), own.mean(), ceiling.mean())
                figures = (*means, (own - plain).mean(), (own - plain).min())
                cells = "".join(f"{value:18.2f}" for value in figures)
                lines.append(f"{family + ' ' + kind:>18}{cells}{len(some):18}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--only", default=",".join(FAMILIES))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("item_dependent.jsonl"))
    parser.add_argument("--show", type=Path)
    given = parser.parse_args()
    if given.show is None:
        identity = ("family", "kind", "annotators", "labels_per_item", "seed")
        done = {tuple(row[name] for name in identity) for row in read(given.out)}
        for crowd in crowds(given.only.split(","), given.repeats):
            if tuple(crowd.values()) not in done:
                line = json.dumps(run(crowd, given.data))
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
                print(line, flush=True)
    print(summarize(read(given.show or given.out)))


if __name__ == "__main__":
    main()
