"""Time and memory of `annotrace aggregate` on large tables: 5, 20 or 100 million labels.

::

    python benchmarks/large_tables.py 5 20 --out results/large_tables.jsonl
    python benchmarks/large_tables.py 100 --method dawid-skene --max-iter 10 --keep labels/
    python benchmarks/large_tables.py 5 --reading --repeats 5

The labels are simulated: five per item, 1,000 per annotator on average, ten classes. They are
written as parquet files of five million labels each, and each run is a process of its own, whose
largest resident memory the system counts. With --source, the same files are aggregated by another
version too, the two in turn, so that their ratio is not that of two states of the machine. With
--reading, the labels are only read, from parquet files and from one csv file, by polars and by
`LabelTable.read` in turn (see label_reading.py).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np
import polars as pl
from label_reading import READERS

from annotrace.version import __version__

ROOT = Path(__file__).parent.parent
N_CLASSES, LABELS_PER_ITEM, LABELS_PER_ANNOTATOR = 10, 5, 1000
ITEMS_PER_FILE = 1_000_000


def write_labels(folder: Path, millions: int, seed: int = 0) -> None:
    """Write simulated labels, five million in each parquet file."""
    rng = np.random.default_rng(seed)
    n_items = millions * 1_000_000 // LABELS_PER_ITEM
    n_annotators = millions * 1_000_000 // LABELS_PER_ANNOTATOR
    skill = rng.beta(6, 2.5, n_annotators).astype(np.float32)
    skill[rng.random(n_annotators) < 0.1] = 1 / N_CLASSES
    usual_error = rng.integers(1, N_CLASSES, n_annotators)
    folder.mkdir(parents=True, exist_ok=True)
    for place, start in enumerate(range(0, n_items, ITEMS_PER_FILE)):
        items = np.arange(start, min(start + ITEMS_PER_FILE, n_items))
        frame = _simulate(rng, items, skill, usual_error)
        frame.write_parquet(folder / f"labels-{place:03}.parquet")


def _simulate(
    rng: np.random.Generator, items: np.ndarray, skill: np.ndarray, usual_error: np.ndarray
) -> pl.DataFrame:
    truth = np.repeat(rng.integers(0, N_CLASSES, len(items)), LABELS_PER_ITEM)
    annotator = rng.integers(0, len(skill), len(truth))
    error = np.where(
        rng.random(len(truth)) < 0.5, usual_error[annotator], rng.integers(1, N_CLASSES, len(truth))
    )
    correct = rng.random(len(truth), np.float32) < skill[annotator]
    label = np.where(correct, truth, (truth + error) % N_CLASSES)
    columns = {"item": np.repeat(items, LABELS_PER_ITEM), "worker": annotator, "label": label}
    named = (pl.format(f"{name}{{}}", pl.col(name)).alias(name) for name in columns)
    return pl.DataFrame(columns).select(named)


def measure(labels: Path, method: str | None, max_iter: int | None, source: Path) -> dict[str, Any]:
    """Aggregate labels in a process of its own; return seconds, peak memory and iterations."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "annotrace", "aggregate", str(labels), "--out", f"{folder}/run"]
        command += ["--method", method] if method else []
        command += ["--max-iter", str(max_iter)] if max_iter else []
        start = time.perf_counter()
        process = subprocess.Popen(_python(*command), env=_with_path(source), stdout=DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status != 0:
            return {"failed": status, "seconds": round(seconds, 1), "gigabytes": _gigabytes(used)}
        run = json.loads(Path(folder, "run", "run.json").read_text())
    return {
        "seconds": round(seconds, 2),
        "gigabytes": _gigabytes(used),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        # Earlier versions describe a run in another way.
        "iterations": run.get("learned", {}).get("n_iter_"),
        "labels": run.get("counts", {}).get("labels"),
    }


def measure_reading(files: list[Path], reader: str) -> dict[str, Any]:
    """Read files in a process of its own; return seconds and peak memory."""
    command = _python(str(ROOT / "benchmarks" / "label_reading.py"), reader, *map(str, files))
    printed = subprocess.run(command, env=_with_path(ROOT / "src"), stdout=PIPE, check=True).stdout
    return {name: round(value, 2) for name, value in json.loads(printed).items()}


def _python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def _with_path(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source)}


def _gigabytes(used: resource.struct_rusage) -> float:
    return round(used.ru_maxrss / 2**20, 2)


def _rows(labels: Path, millions: int, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure all that is compared, in turn."""
    about = {"version": __version__, "millions": millions, "threads": os.cpu_count()}
    for _ in range(given.repeats):
        for names, run in _reading(labels) if given.reading else _aggregating(labels, given):
            load = round(os.getloadavg()[0], 1)
            yield about | names | {"load": load} | run()


Run = tuple[dict[str, Any], Callable[[], dict[str, Any]]]


def _aggregating(labels: Path, given: argparse.Namespace) -> Iterator[Run]:
    sources = {"this": ROOT / "src"} | ({"other": given.source} if given.source else {})
    for name, source in sources.items():
        names = {"source": name, "method": given.method or "default", "max_iter": given.max_iter}
        yield names, partial(measure, labels, given.method, given.max_iter, source)


def _reading(labels: Path) -> Iterator[Run]:
    parquet = sorted(labels.glob("*.parquet"))
    csv = labels.with_suffix(".csv")
    if not csv.exists():
        pl.scan_parquet(parquet).sink_csv(csv)
    for kind, files in {"parquet": parquet, "csv": [csv]}.items():
        for reader in READERS:
            yield {"reader": reader, "file": kind}, partial(measure_reading, files, reader)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", type=int, nargs="+", help="Millions of labels.")
    parser.add_argument("--method", help="As in `annotrace aggregate`.")
    parser.add_argument("--max-iter", type=int)
    parser.add_argument("--reading", action="store_true", help="Only read, against polars.")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--source", type=Path, help="src of another version, measured in turn.")
    parser.add_argument("--keep", type=Path, help="Folder to write the labels to, and to keep.")
    parser.add_argument("--out", type=Path, help="JSON lines to append to.")
    given = parser.parse_args()
    for millions in given.millions:
        folder = given.keep or Path(tempfile.mkdtemp())
        labels = folder / f"{millions}-million"
        try:
            if not labels.exists():
                write_labels(labels, millions)
            for row in _rows(labels, millions, given):
                print(json.dumps(row), flush=True)
                if given.out:
                    with given.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
        finally:
            if given.keep is None:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
