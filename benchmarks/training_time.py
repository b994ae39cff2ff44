"""Processor time of `auto` at each effort against one plain training, `vanilla`.

    python benchmarks/training_time.py [--data DIR] [--sets labelme,digits,reviews]
                                       [--variants full,rand-1] [--seeds 2] [--thorough]
                                       [--out FILE] [--show FILE]

Sets and variants are those of `variants.py`. All fits are made in this process by one thread, in
turn, after a first one that is not counted: it imports what torch needs to train. Writes one JSON
line per fit, with its accuracy on new items and that of its posterior, and prints times as
multiples of `vanilla` on the same cell.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from variants_crowds import Crowd, read_crowd
from variants_labels import keep_labels

import annotrace as at

PLAIN = "vanilla"


def fit(effort: str, crowd: Crowd, table: at.LabelTable, seed: int) -> dict[str, Any]:
    """Fit a method to labels; return its processor time and accuracies."""
    params = {} if effort == PLAIN else {"effort": effort}
    name = PLAIN if effort == PLAIN else "auto"
    model = at.make(name, random_state=seed, device="cpu", **params)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(crowd.X, table)
    seconds = time.process_time() - started
    return {
        "effort": effort,
        "cpu_seconds": round(seconds, 2),
        "accuracy": float(np.mean(model.predict(crowd.X_test) == crowd.y_test)),
        "posterior_accuracy": float(np.mean(model.result_.estimate == crowd.y)),
    }


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Fit all methods to all cells, in turn."""
    efforts = [PLAIN, "fast", "default", *["thorough"] * options.thorough]
    rows: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        for seed in range(options.seeds):
            crowd = read_crowd(name, options.data, seed)
            for variant in options.variants.split(","):
                table = keep_labels(crowd.table, crowd.y, variant, seed)
                if not rows:
                    fit(PLAIN, crowd, table, seed)
                cell = {"set": name, "variant": variant, "seed": seed}
                for effort in efforts:
                    load = {"load": round(os.getloadavg()[0], 1)}
                    rows.append(cell | fit(effort, crowd, table, seed) | load)
                    print(json.dumps(rows[-1]), flush=True)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print times as multiples of the plain training, and accuracies, by set and in the mean."""
    plain = {_cell(row): row["cpu_seconds"] for row in rows if row["effort"] == PLAIN}
    groups: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for row in rows:
        ratio = row["cpu_seconds"] / plain[_cell(row)]
        for name in (f"{row['set']} {row['variant']}", "all"):
            measures = ratio, row["accuracy"], row["posterior_accuracy"]
            groups[name, row["effort"]].append(measures)
    for (name, effort), measures in sorted(groups.items()):
        ratio, accuracy, posterior = np.mean(measures, axis=0)
        print(f"{name:18}{effort:10}{ratio:6.1f} x  {accuracy:.3f}  {posterior:.3f}")


def _cell(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["set"], row["variant"], row["seed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", default="labelme,digits,reviews")
    parser.add_argument("--variants", default="full,rand-1")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    if options.show:
        show([json.loads(line) for line in options.show.read_text().splitlines()])
        return
    torch.set_num_threads(1)
    rows = measure(options)
    if options.out is not None:
        with options.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    show(rows)


if __name__ == "__main__":
    main()
