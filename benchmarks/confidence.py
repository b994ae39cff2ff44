"""Calibration of `confidence_` on public crowds, beside that of one correlation for all crowds.

usage: python benchmarks/confidence.py FOLDER [--out results/confidence.jsonl]

FOLDER has one csv file per crowd with the columns item, annotator, label and truth. For every crowd
and six aggregations, computes the expected calibration error for several correlations between the
labels of an item, and for the one that `confidence_` estimates from the labels ("estimated").
Prints the means, and the error on each crowd with the correlation that is best on all others.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import annotrace as at
from annotrace.crowd import CrowdResult
from annotrace.diagnosis import calibration_error, confidence
from annotrace.diagnosis.confidence import independent_posterior, temper
from annotrace.errors import InputError

CORRELATIONS = (0.0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
ESTIMATED = "estimated"
METHODS = ("hierarchical", "pooled", "dawid-skene", "majority", "wawa", "one-coin")


def errors(result: CrowdResult) -> dict[str, float]:
    """Return the calibration error for each correlation, and of `confidence_`."""
    posterior, truth = independent_posterior(result), result.table.truth
    assert truth is not None
    n_labels = np.maximum(result.table.labels_per_item(), 1)[:, None]
    rows, certain = np.arange(len(truth)), np.eye(posterior.shape[1])[result.estimate]
    found = {ESTIMATED: calibration_error(certain, truth, confidence=confidence(result))}
    for correlation in CORRELATIONS:
        tempered = temper(posterior, 1 / (1 + correlation * (n_labels - 1)))
        chosen = tempered[rows, result.estimate]
        found[str(correlation)] = calibration_error(certain, truth, confidence=chosen)
    return found


def has_truth(path: Path) -> bool:
    """Whether a file has labels and the truth of some items."""
    try:
        truth = at.LabelTable.read(path, truth="truth").truth
    except InputError:
        return False
    return truth is not None and bool((truth >= 0).any())


def run(path: Path, method: str) -> dict[str, Any]:
    table = at.LabelTable.read(path, truth="truth")
    result = at.aggregation.make(method, random_state=0).fit(table).result_
    name = path.name.partition(".")[0]
    return {
        "experiment": "confidence",
        "crowd": name,
        "method": method,
        "errors": errors(result),
        "versions": {"annotrace": at.__version__},
    }


def show(results: list[dict[str, Any]]) -> None:
    columns = (ESTIMATED, *map(str, CORRELATIONS))
    print("| method | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for method in METHODS:
        own = [list(r["errors"].values()) for r in results if r["method"] == method]
        print(f"| {method} | " + " | ".join(f"{x:.3f}" for x in np.mean(own, axis=0)) + " |")
    crowds = sorted({result["crowd"] for result in results})
    table = np.array(
        [
            np.mean([list(r["errors"].values())[1:] for r in results if r["crowd"] == c], axis=0)
            for c in crowds
        ]
    )
    best = [np.delete(table, k, axis=0).mean(axis=0).argmin() for k in range(len(crowds))]
    left_out = np.mean([table[k, b] for k, b in enumerate(best)])
    print(f"all: {table.mean(axis=0).round(4).tolist()}; crowds left out: {left_out:.4f}, chosen:")
    print([CORRELATIONS[b] for b in best])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    for path in sorted(options.folder.glob("*.csv*")):
        if not has_truth(path):
            continue
        for method in METHODS:
            results.append(run(path, method))
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    show(results)


if __name__ == "__main__":
    main()
