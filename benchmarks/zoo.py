"""A zoo of crowds: aggregations on every real crowd and on families of simulated ones.

usage: python benchmarks/zoo.py [--data DIR] [--only real,camps,...] [--draws 20] [--seed 1000]
                                [--workers 1] [--out results/zoo.jsonl]
                                [--summary] [--check] [--leave-one-out]

Runs every method on the real crowds of `zoo_real.py` and on draws of each family of
`zoo_families.py`, with seeds from `--seed`, and appends one JSON line per crowd to `--out`; crowds
that the file has already are skipped. If several classes share the highest probability, an item
counts by the probability of drawing the correct one. Seeds from 1000 are for testing: choose models
and constants on others.

`--summary`, `--check` and `--leave-one-out` run nothing and read `--out`: they print means by crowd
and family, exit with 1 if the default misses one of its bars, and print the method that would be
chosen for each family from all others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from aggregation_accuracy import correctness
from sklearn.exceptions import ConvergenceWarning
from zoo_families import FAMILIES, draw_crowd
from zoo_real import FILES, read_crowd
from zoo_summary import DEFAULT, MAJORITY, REAL, missed_bars, show_left_out, show_summary

import annotrace as at
from annotrace.crowd.dependence import known_dependence
from annotrace.diagnosis import calibration_error
from annotrace.labels import LabelTable

SIMPLE = (MAJORITY, "weighted-vote", "dawid-skene", "one-coin", "mace")
METHODS = (*SIMPLE, "wawa", "pooled", "glad", "hierarchical", DEFAULT)

Row = dict[str, Any]


class Job(NamedTuple):
    """A real crowd by name, or a draw of a family by seed."""

    family: str
    crowd: str | int

    @property
    def key(self) -> str:
        """The name of the crowd in the results."""
        return str(self.crowd) if self.family == REAL else f"{self.family}/{self.crowd}"


def run(data: Path, job: Job) -> Row:
    """Fit every method to one crowd and return its row of the results."""
    started = time.perf_counter()
    if job.family == REAL:
        row = measure(read_crowd(str(job.crowd), data))
    else:
        drawn = draw_crowd(job.family, int(job.crowd))
        row = measure(drawn.table, drawn.oracle)
        row |= {"easy": drawn.is_easy, "shares_errors": drawn.shares_errors}
    seconds = round(time.perf_counter() - started, 2)
    versions = {"annotrace": at.__version__, "torch": torch.__version__}
    return {
        "experiment": "zoo",
        "family": job.family,
        "crowd": job.key,
        **row,
        "seconds": seconds,
        "versions": versions,
    }


def measure(table: LabelTable, oracle: np.ndarray | None = None) -> Row:
    """Return sizes of a crowd, the accuracy of every method, and what is known of the default."""
    truth = table.truth
    assert truth is not None
    fitted = {method: fit(method, table) for method in METHODS}
    posteriors = {method: model.posterior_ for method, model in fitted.items()}
    if oracle is not None:
        posteriors["oracle"] = oracle
    correct = {name: correctness(own, truth) for name, own in posteriors.items()}
    return {
        "items": table.n_items,
        "known": int((truth >= 0).sum()),
        "annotators": table.n_annotators,
        "classes": table.n_classes,
        "labels": table.n_labels,
        "error_correlation": round(known_dependence(table, truth).correlation, 4),
        "accuracy": {name: round(float(own.mean()), 6) for name, own in correct.items()},
        "balanced_accuracy": {name: _balanced(own, truth) for name, own in correct.items()},
        **judge(fitted[DEFAULT], truth),
        **compare(correct),
    }


def fit(method: str, table: LabelTable) -> at.aggregation.Aggregation:
    """Fit an aggregation by name; `default` is whatever `make` chooses."""
    names = () if method == DEFAULT else (method,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return at.aggregation.make(*names, random_state=0).fit(table)


def judge(model: at.aggregation.Aggregation, truth: np.ndarray) -> Row:
    """Return the verdict on a fit and the calibration error of its confidence."""
    chosen = np.eye(len(model.prior_))[model.result_.estimate]
    error = calibration_error(chosen, truth, confidence=model.confidence_)
    return {"calibration_error": round(error, 4), "verdict": model.diagnosis_.verdict}


def compare(correct: dict[str, np.ndarray]) -> Row:
    """Return how far the default is above the best simple method, with a paired standard error."""
    best = max(SIMPLE, key=lambda method: float(correct[method].mean()))
    apart = correct[DEFAULT] - correct[best]
    return {
        "best_simple": best,
        "difference": round(float(apart.mean()), 6),
        "difference_se": round(float(apart.std(ddof=1) / np.sqrt(len(apart))), 6),
    }


def _balanced(correct: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean recall of the classes that occur."""
    known = truth[truth >= 0]
    shares = np.bincount(known, correct)[np.unique(known)] / np.unique(known, return_counts=True)[1]
    return round(float(shares.mean()), 6)


def plan(only: list[str], seeds: range) -> list[Job]:
    """Return the crowds of the named families, the real ones first."""
    real = [Job(REAL, name) for name in FILES] if REAL in only else []
    families = [family for family in FAMILIES if family in only]
    return real + [Job(family, seed) for family in families for seed in seeds]


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file of results, none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_missing(jobs: list[Job], out: Path, data: Path, workers: int) -> Iterator[Row]:
    """Run the crowds that `out` does not have, append each row to it when done, and yield it."""
    done = {row["crowd"] for row in read_rows(out)}
    missing = [job for job in jobs if job.key not in done]
    # Forked processes would inherit the threads of torch; one thread each is fastest.
    context = get_context("spawn")
    with context.Pool(workers, torch.set_num_threads, (1,)) as pool, out.open("a") as file:
        for row in pool.imap(partial(run, data), missing):
            file.write(json.dumps(row) + "\n")
            file.flush()
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default=",".join([REAL, *FAMILIES]), help="families to run")
    parser.add_argument("--draws", type=int, default=20, help="of each simulated family")
    parser.add_argument("--seed", type=int, default=1000, help="of the first draw")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/zoo.jsonl"))
    for option in ("--summary", "--check", "--leave-one-out"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    only = options.only.split(",")
    if unknown := sorted({*only} - {REAL, *FAMILIES}):
        parser.error(f"Expected --only to name families of {[REAL, *FAMILIES]}, but got {unknown}.")
    if not (options.summary or options.check or options.leave_one_out):
        jobs = plan(only, range(options.seed, options.seed + options.draws))
        for row in run_missing(jobs, options.out, options.data, options.workers):
            print(f"{row['crowd']}: {row['accuracy'][DEFAULT]:.4f} ({row['seconds']} s)")
        return
    rows = read_rows(options.out)
    if options.summary:
        show_summary(rows)
    if options.leave_one_out:
        show_left_out(rows)
    if options.check:
        missed = missed_bars(rows)
        print(*(missed or ["All bars are met."]), sep="\n")
        sys.exit(bool(missed))


if __name__ == "__main__":
    main()
