"""Every method on variants of six crowds: fewer labels per item, and mostly wrong ones.

usage: python benchmarks/variants.py [--data DIR] [--sets labelme,...] [--variants full,rand-1,...]
           [--seeds 0,1,2] [--methods all | SPEC ...] [--recipe-best N] [--workers N]
           [--device cpu|cuda] [--seconds LIMIT] [--retry] [--out results/variants.jsonl]
       python benchmarks/variants.py --show FILE ... [--check] [--leave-one-out]

The sets are in `variants_crowds.py`, the variants in `variants_labels.py`. A method is a
specification, NAME[+recipe][:parameter=value,...], as in `--methods auto:n_iter=3 vanilla`; by
default every method is run at its defaults. `--recipe-best N` runs instead, with the recipe, the N
methods that are the most accurate of the default runs that `--out` has. The seed draws the variant
and is the method's `random_state`; nothing in a run is chosen by truth.

A run appends one JSON line to `--out`: accuracy of the classifier on the test items and which of
them are correct, accuracy of the posterior, held-out losses, seconds of the fit; or the error of a
fit that failed. Runs that the file has are skipped, failed ones unless `--retry`. All methods on a
variant of a set come together, cheap sets first. Each worker process has one thread; with
`--device cuda` images are on the GPU. After `--seconds` nothing more is begun, and runs in progress
are abandoned. Two commands with different sets and files may run side by side.

`--show` prints means and ranks over all files, `--check` the bars of `auto` that it misses
(`variants_check.py`; exits with 1 if there are any), `--leave-one-out` the method that would be
chosen for each set by all others. Here `--sets`, `--variants`, `--seeds` and `--methods` select
rows.

Needs only torch, numpy, scipy and scikit-learn, and in the folder `--data` (25 MB):

    cifar10/cifar10_train_1.npz                crowd/cifar10n.npz
    crowd/labelme.npz                          crowd/sentiment_polarity.npz
    crowd/sentiment_polarity_text.csv.gz       crowd/text_crowds/amazon_isbook.csv.gz
    crowd/text_crowds/amazon_isbook_text.csv.gz
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path

from variants_check import missed_bars
from variants_crowds import IMAGES, SETS
from variants_labels import VARIANTS
from variants_methods import MethodSpec, default_specs, run, with_recipe
from variants_rows import Cell, Job, Row, job_of, new_row, read_rows
from variants_summary import Runs, best_methods, show_left_out, show_summary
from variants_workers import WorkerDiedError, run_jobs

from annotrace.errors import InputError

ALL = "all"


def plan(sets: list[str], variants: list[str], seeds: list[int]) -> list[Cell]:
    """Return the cells to run, cheap sets first."""
    ordered = [name for name in SETS if name in sets]
    return [Cell(name, v, seed) for name in ordered for seed in seeds for v in variants]


def choose_for_recipe(rows: list[Row], cells: list[Cell], number: int) -> list[str]:
    """Return the best methods of the default runs on these cells, with the recipe."""
    specs = {spec: with_recipe(spec) for spec in default_specs()}
    runs = Runs(rows, cells).only(specs)
    for spec in specs:
        if specs[spec] and (done := len(runs.done(spec))) < len(cells):
            print(f"Not considered for the recipe: {spec}, with {done} of {len(cells)} runs")
    found = best_methods(runs, number, lambda method: specs[method] is not None)
    return [str(specs[method]) for method in found]


def run_missing(
    jobs: list[Job], out: Path, data: Path, device: str, workers: int, seconds: float | None = None
) -> None:
    """Run the jobs, and append each row to `out` when it is done."""
    started = time.monotonic()
    with out.open("a", encoding="utf-8") as file:
        done = run_jobs(partial(run, data=data, device=device), jobs, workers, seconds)
        for number, (job, found) in enumerate(done, start=1):
            died = isinstance(found, WorkerDiedError)
            row = new_row(job, {"error": f"The process ended: {found}"}) if died else found
            file.write(json.dumps(row) + "\n")
            file.flush()
            passed = time.monotonic() - started
            print(f"{number}/{len(jobs)} {passed:.0f} s: {_said(row)}", flush=True)


def _said(row: Row) -> str:
    outcome = row["error"] if "error" in row else f"{row['accuracy']:.4f} ({row['seconds']} s)"
    return f"{row['set']} {row['variant']} {row['seed']} {row['method']}: {outcome}"


def pending(cells: list[Cell], methods: list[str], rows: list[Row], retry: bool) -> list[Job]:
    """Return the jobs without a row, or without one that did not fail."""
    done = {job_of(row) for row in rows if not (retry and "error" in row)}
    jobs = [Job(cell, method) for cell in cells for method in methods]
    return [job for job in jobs if job not in done]


def select(rows: list[Row], cells: list[Cell], methods: list[str] | None) -> Runs:
    """Return the rows of some cells and methods, all methods for None."""
    chosen = set(cells)
    own = [row for row in rows if job_of(row).cell in chosen]
    return Runs(row for row in own if methods is None or row["method"] in methods)


def show(options: argparse.Namespace, cells: list[Cell], methods: list[str] | None) -> int:
    """Print what is asked of earlier runs; return the exit code."""
    rows = read_rows(options.show)
    runs = select(rows, cells, methods)
    show_summary(runs)
    if options.leave_one_out:
        show_left_out(runs)
    if not options.check:
        return 0
    counted = Runs(select(rows, cells, None).rows.values(), cells)
    missed = missed_bars(counted, default_specs())
    print("\nBars:", *(missed or ["All bars are met."]), sep="\n  ")
    return int(bool(missed))


def read_options() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--methods", nargs="+", default=[ALL], metavar="SPEC")
    parser.add_argument("--recipe-best", type=int, metavar="N")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu", help=f"for {' and '.join(IMAGES)}")
    parser.add_argument("--seconds", type=float, metavar="LIMIT")
    parser.add_argument("--out", type=Path, default=Path("results/variants.jsonl"))
    parser.add_argument("--show", type=Path, nargs="+", metavar="FILE")
    for option in ("--retry", "--check", "--leave-one-out"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    for name, known in (("sets", [*SETS]), ("variants", [*VARIANTS])):
        if unknown := sorted({*getattr(options, name).split(",")} - {*known}):
            parser.error(f"Expected --{name} to be of {known}, but got {unknown}.")
    if options.workers < 1:
        parser.error(f"Expected --workers to be at least 1, but got {options.workers}.")
    return parser, options


def main() -> None:
    parser, options = read_options()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    cells = plan(options.sets.split(","), options.variants.split(","), seeds)
    methods = None if options.methods == [ALL] else options.methods
    if options.show:
        sys.exit(show(options, cells, methods))
    rows = read_rows([options.out])
    if options.recipe_best:
        methods = choose_for_recipe(rows, cells, options.recipe_best)
    methods = default_specs() if methods is None else methods
    try:
        for method in methods:
            MethodSpec.parse(method)
    except InputError as error:
        parser.error(str(error))
    # The worker processes read it when they start: one thread each is fastest.
    os.environ["OMP_NUM_THREADS"] = "1"
    jobs = pending(cells, methods, rows, options.retry)
    run_missing(jobs, options.out, options.data, options.device, options.workers, options.seconds)


if __name__ == "__main__":
    main()
