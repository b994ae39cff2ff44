"""Coverage of 90 % intervals of annotators' accuracy, from labels alone.

usage: python benchmarks/accuracy_intervals.py [--data DIR] [--method default] [--draws 10]
                                               [--seed 1000] [--out FILE]

Accuracy is the share of an annotator's labels that are correct. On real crowds, and on panels of
judges, it is that of labels of known truth, of annotators with 20 of them or more. On simulated
crowds of the zoo it is the expected one, given the confusion matrix of the annotator and the true
classes that were labelled; those with independent errors should be covered in 85 to 95 %. Beside
each is the coverage that intervals would have if errors were independent.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from zoo_families import FAMILIES, draw_crowd
from zoo_real import PANELS, read_crowd

import annotrace as at
from annotrace.crowd.skills import beta_interval
from annotrace.labels import LabelTable

Row = dict[str, Any]
Array = np.ndarray

HUMAN = (
    *("bluebirds", "dog", "product_match", "sentiment_polarity_amt500"),
    *("snow2008_rte", "snow2008_temp", "weather_sentiment_amt", "zencrowd_us"),
)
MIN_LABELS = 20


def mean_by_annotator(table: LabelTable, values: Array, used: Array) -> tuple[Array, Array]:
    """Average values of labels over each annotator's used labels; return how many they are too."""
    n = np.bincount(table.annotator[used], minlength=table.n_annotators)
    total = np.bincount(table.annotator[used], values[used], table.n_annotators)
    return total / np.maximum(n, 1), n


def cover(name: str, method: str, table: LabelTable, accuracy: Array, n: Array) -> Row:
    """Fit a crowd, and count whose accuracy is covered."""
    model = at.aggregation.make(*([] if method == "default" else [method])).fit(table)
    annotators, enough = model.result_.annotators, n >= MIN_LABELS
    independent = beta_interval(annotators.accuracy, annotators.accuracy_variance, 0.9)
    row: Row = {
        "experiment": "accuracy_intervals",
        "method": method,
        "crowd": name,
        "annotators": int(enough.sum()),
        "verdict": model.diagnosis_.verdict,
        "correlation": annotators.dependence.correlation,
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }
    for kind, (low, high) in (
        ("", annotators.accuracy_interval(0.9)),
        ("_independent", independent),
    ):
        row["covered" + kind] = int(np.sum((low <= accuracy) & (accuracy <= high) & enough))
        row["widths" + kind] = np.round(high - low, 4)[enough].tolist()
    return row


def real(name: str, method: str, data: Path) -> Row:
    table = read_crowd(name, data)
    assert table.truth is not None
    true = table.truth[table.item]
    accuracy, n = mean_by_annotator(table, table.label == true, true >= 0)
    return cover(name, method, table, accuracy, n)


def simulated(family: str, method: str, seed: int) -> Row:
    crowd = draw_crowd(family, seed)
    table = crowd.table
    assert table.truth is not None
    true = table.truth[table.item]
    right = crowd.confusion[table.annotator, true, true]
    accuracy, n = mean_by_annotator(table, right, np.ones(table.n_labels, bool))
    return {**cover(family, method, table, accuracy, n), "seed": seed, "easy": crowd.is_easy}


def show(rows: list[Row]) -> None:
    print("| crowd | annotators | covered | width | if independent | width | verdict |")
    print("|---|" + "---:|" * 5 + "---|")
    groups: dict[str, list[Row]] = {}
    for row in rows:
        places = [row["crowd"]]
        places += ["eight human crowds"] * (row["crowd"] in HUMAN)
        places += ["simulated, independent errors"] * row.get("easy", False)
        for place in places:
            groups.setdefault(place, []).append(row)
    for name, own in groups.items():
        n = max(sum(row["annotators"] for row in own), 1)
        cells = []
        for kind in ("", "_independent"):
            widths = np.concatenate([row["widths" + kind] for row in own])
            cells.append(f"{sum(row['covered' + kind] for row in own) / n:.3f}")
            cells.append(f"{np.median(widths) if len(widths) else np.nan:.3f}")
        verdict = own[0]["verdict"] if len(own) == 1 else ""
        print(f"| {name} | {n} | " + " | ".join(cells) + f" | {verdict} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--method", default="default")
    parser.add_argument("--draws", type=int, default=10, help="of each family")
    parser.add_argument("--seed", type=int, default=1000, help="of the first draw")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [real(name, options.method, options.data) for name in (*HUMAN, *PANELS)]
    for seed in range(options.seed, options.seed + options.draws):
        rows += [simulated(family, options.method, seed) for family in FAMILIES]
    if options.out is not None:
        with options.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    show(rows)


if __name__ == "__main__":
    main()
