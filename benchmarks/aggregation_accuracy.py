"""Accuracy of every aggregation on real crowds, beside crowd-kit's.

    python benchmarks/aggregation_accuracy.py FOLDER [--peers VENV] [--out RESULTS.jsonl]

FOLDER holds one csv.gz per set with the columns item, annotator, label, truth. If several classes
share the highest probability, an item counts by the probability of drawing the correct one. The
default of `annotrace.aggregation` was chosen on the sets in odd positions of the alphabet alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from peers import METHODS, make_environment, run_peer
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from annotrace.aggregation import list_aggregations, make
from annotrace.errors import InputError
from annotrace.labels import LabelTable

COLUMNS = ("item", "annotator", "label", "truth")


def read_sets(folder: Path) -> dict[str, LabelTable]:
    """Read the sets that have annotators, classes and truth, in alphabetical order."""
    tables = {}
    for path in sorted(folder.glob("*.csv.gz")):
        try:
            table = LabelTable.read(path)
        except InputError:
            continue  # texts, scores and counts are not label tables
        if table.truth is not None:
            tables[path.name.removesuffix(".csv.gz")] = table
    return tables


def correctness(posterior: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return 1 or 0 for each item of known truth, and 1 / n if n classes tie with the true one."""
    known = np.flatnonzero(truth >= 0)
    highest = posterior[known] >= posterior[known].max(1, keepdims=True) - 1e-9
    return highest[np.arange(len(known)), truth[known]] / highest.sum(1)


def run_ours(tables: dict[str, LabelTable]) -> list[dict]:
    rows = []
    for entry in list_aggregations():
        for name, table in tables.items():
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = make(entry.name).fit(table)
            seconds = time.perf_counter() - started
            measures = {
                "accuracy": float(correctness(model.posterior_, table.truth).mean()),
                "seconds": seconds,
            }
            rows.append(_row("annotrace", entry.name, name, **measures))
    return rows


def run_peers(tables: dict[str, LabelTable], python: Path, methods: list[str]) -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            path = Path(folder) / f"{name}.npz"
            columns = {part: getattr(table, part) for part in COLUMNS}
            np.savez(path, **columns)
            for method in methods:
                rows.append(_row("crowd-kit", method, name, **run_peer(python, path, method)))
    return rows


def _row(library: str, method: str, name: str, **values: object) -> dict:
    return {"experiment": "aggregation", "library": library, "method": method, "set": name} | values


def print_table(rows: list[dict], names: list[str]) -> None:
    """Print accuracies, their means over all, odd and even positions, and mean ranks."""
    methods = list(dict.fromkeys((row["library"], row["method"]) for row in rows))
    found = {(row["library"], row["method"], row["set"]): row.get("accuracy") for row in rows}
    values = np.array([[found.get((*m, name)) or np.nan for name in names] for m in methods])
    ranks = rankdata(-np.round(values, 6), axis=0, nan_policy="omit")
    print("| method |", " | ".join(names), "| mean | odd | even | mean rank |")
    print("|---" * (len(names) + 5) + "|")
    for (library, method), row, rank in zip(methods, values, ranks, strict=True):
        means = [np.nanmean(part) for part in (row, row[::2], row[1::2])]
        cells = [f"{value:.4f}" for value in [*row, *means]]
        print(f"| {library} {method} |", " | ".join(cells), f"| {np.nanmean(rank):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--peers", type=Path, help="virtual environment of crowd-kit, created if needed"
    )
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args()
    tables = read_sets(settings.folder)
    rows = run_ours(tables)
    if settings.peers:
        rows += run_peers(tables, make_environment(settings.peers), list(METHODS))
    print_table(rows, list(tables))
    if settings.out:
        settings.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
