"""How many labels are needed, when it is chosen who labels what next.

usage: python benchmarks/allocation.py [--method gem] [--seeds 10] [--capacity 70] [--new 10]
                                       [--cleanlab FOLDER] [--out FILE] [POLICY ...]

1,400 digits cut to five principal components; 20 hammer-spammers of skill .25 to .95; one label an
item to start with, by an annotator drawn at random. Then batches of labels with a fit after each.
N = 1,400 more labels, one an item by an annotator drawn at random, reach some accuracy of the
posterior; told is the number after which a policy has reached it and stays there. Where annotators
are drawn at random, --capacity does not bind them: each gives about N / 20 = 70.

A policy is "random"; "items" (the items most in doubt, annotators drawn at random); "activelab"
(the items by cleanlab's ActiveLab, annotators drawn at random; needs --cleanlab, a folder for an
environment of its own); or "allocate" with settings behind it: "allocate:per_item=2".
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from active_lab import active_lab_scores, make_environment
from sklearn.decomposition import PCA

import annotrace as at
from annotrace.allocation.gain import expected_certainty

N_ITEMS, N_ANNOTATORS, N_CLASSES = 1400, 20, 10
BATCH = 140
UP_TO = 840


@dataclass
class Crowd:
    """Items with features, and what each annotator would say of each of them."""

    seed: int
    n_new: int
    capacity: int | None
    labels: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        train, _ = at.data.load_digits().split(N_ITEMS)
        flat = train.X.reshape(N_ITEMS, -1)
        self.X = PCA(5, random_state=0).fit_transform(flat).astype(np.float32)
        self.truth = train.y
        self.rng = np.random.default_rng(self.seed)
        skill = np.linspace(0.25, 0.95, N_ANNOTATORS)[:, None, None]
        cumulative = (skill * np.eye(N_CLASSES) + (1 - skill) / N_CLASSES).cumsum(axis=2)
        chance = self.rng.random((N_ITEMS, N_ANNOTATORS, 1))
        self.answers = (chance >= cumulative[:, self.truth].transpose(1, 0, 2)).sum(axis=2)
        self.answers = self.answers.clip(max=N_CLASSES - 1)
        known = np.sort(self.rng.permutation(N_ANNOTATORS)[self.n_new :])
        self.labels = list(enumerate(self.rng.choice(known, N_ITEMS).tolist()))
        self.left = dict.fromkeys(range(N_ANNOTATORS), self.capacity)
        self.order = self.rng.permutation(N_ITEMS)

    def fit(self, method: str) -> Any:
        """Learn from the labels so far."""
        item, annotator = np.array(self.labels).T
        table = at.LabelTable.from_codes(
            item,
            annotator,
            self.answers[item, annotator],
            n_items=N_ITEMS,
            n_annotators=N_ANNOTATORS,
            n_classes=N_CLASSES,
        )
        return at.make(method, random_state=self.seed).fit(self.X, table)

    def ask(self, pairs: list[tuple[int, int]]) -> None:
        """Add the labels of some pairs (item, annotator)."""
        self.labels += pairs
        for _, who in pairs:
            if self.left[who] is not None:
                self.left[who] -= 1

    def draw_annotators(self, items: list[int]) -> list[tuple[int, int]]:
        """Draw someone for each item who has not labelled it."""
        given = set(self.labels)
        free = [[w for w in range(N_ANNOTATORS) if (item, w) not in given] for item in items]
        return [(item, int(self.rng.choice(who))) for item, who in zip(items, free, strict=True)]


def next_labels(policy: str, crowd: Crowd, model: Any, cleanlab: Path | None) -> list[Any]:
    name, *given = policy.split(":")
    if name == "allocate":
        settings = dict(setting.split("=") for setting in given)
        settings = {k: int(v) if v.isdigit() else v for k, v in settings.items()}
        frame = at.allocate(model, BATCH, available=crowd.left, **settings)
        return frame.select("item", "annotator").rows()
    if name == "random":
        items, crowd.order = crowd.order[:BATCH], crowd.order[BATCH:]
    elif name == "items":
        items = np.argsort(expected_certainty(model.posterior_), kind="stable")[:BATCH]
    else:
        item, annotator = np.array(crowd.labels).T
        labels = {"item": item, "annotator": annotator, "label": crowd.answers[item, annotator]}
        scores = active_lab_scores(cleanlab, **labels, pred_probs=model.predict_proba(crowd.X))
        items = np.argsort(scores, kind="stable")[:BATCH]
    return crowd.draw_annotators(items.tolist())


def run(policy: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    crowd = Crowd(seed, options.new, options.capacity)
    up_to = N_ITEMS if policy == "random" else UP_TO
    started, curve, choosing = time.perf_counter(), {}, 0.0
    for n in range(0, up_to + 1, BATCH):
        if policy != "random" or n in (0, UP_TO, N_ITEMS):
            model = crowd.fit(options.method)
            curve[n] = float(np.mean(model.posterior_.argmax(1) == crowd.truth))
        if n < up_to:
            before = time.perf_counter()
            crowd.ask(next_labels(policy, crowd, model, options.cleanlab))
            choosing += time.perf_counter() - before
    return {
        "experiment": "allocation",
        "policy": policy,
        "method": options.method,
        "seed": seed,
        "capacity": options.capacity,
        "new": options.new,
        "curve": curve,
        "seconds": round(time.perf_counter() - started, 1),
        "seconds_choosing": round(choosing, 2),
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def labels_needed(curve: dict[int, float], target: float) -> float:
    """Give the labels from which on a curve is at the target or above; infinity if it is not."""
    short = [n for n, accuracy in curve.items() if accuracy < target]
    after = [n for n in curve if not short or n > max(short)]
    return min(after, default=float("inf"))


def show(runs: list[dict[str, Any]]) -> None:
    targets = {r["seed"]: r["curve"][N_ITEMS] for r in runs if r["policy"] == "random"}
    print(f"random reaches {np.mean(list(targets.values())):.3f} with {N_ITEMS} more labels\n")
    print("| policy | at 0 | 140 | 280 | 420 | 560 | 840 | labels needed / N | worst |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for policy in dict.fromkeys(r["policy"] for r in runs):
        own = [r for r in runs if r["policy"] == policy]
        needed = [labels_needed(r["curve"], targets[r["seed"]]) / N_ITEMS for r in own]
        cells = [
            f"{np.mean([r['curve'][n] for r in own]):.3f}" if n in own[0]["curve"] else ""
            for n in (0, 140, 280, 420, 560, 840)
        ]
        print(f"| {policy} | {' | '.join(cells)} | {np.mean(needed):.2f} | {max(needed):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("policies", nargs="*", default=["random", "items", "allocate"])
    parser.add_argument("--method", default="gem")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--capacity", type=int, help="labels that each can give, at most")
    parser.add_argument("--new", type=int, default=0, help="annotators who begin without a label")
    parser.add_argument("--cleanlab", type=lambda folder: make_environment(Path(folder)))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = []
    for seed in range(options.seeds):
        for policy in dict.fromkeys(["random", *options.policies]):
            runs.append(run(policy, seed, options))
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
    show(runs)


if __name__ == "__main__":
    main()
