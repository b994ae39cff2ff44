"""Time, memory and accuracy of aggregations on large crowds, side by side in one run.

    python benchmarks/aggregation_speed.py [S L W] [--reference FILE] [--workload FILE]
                                           [--peers VENV] [--repeats 3] [--out RESULTS.jsonl]

Each contender runs in its own process, in turn, and its best time counts. Every Dawid-Skene runs
20 iterations; GLAD and MACE run with their defaults. FILE of --reference has a function `ds_scipy`,
FILE of --workload a function `gen`; without the latter a crowd of the same sizes is simulated here.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from peers import make_environment, run_peer

# Items, annotators, classes, labels per item.
SIZES = {
    "S": (10_000, 100, 10, 5),
    "M": (100_000, 1_000, 10, 5),
    "L": (1_000_000, 10_000, 10, 5),
    "W": (100_000, 1_000, 100, 5),
}
ITERATIONS = 20
OURS = {
    "S": ("dawid-skene", "glad", "mace", "hierarchical"),
    "M": ("dawid-skene", "pooled", "hierarchical"),
    "L": ("dawid-skene", "hierarchical"),
    "W": ("dawid-skene", "pooled", "hierarchical"),
}
PEERS = {"S": ("dawid-skene", "glad", "mace"), "M": ("dawid-skene",), "L": ("dawid-skene",)}
WITH_DEFAULTS = ("glad", "mace")


def make_crowd(name: str, folder: Path, workload: Path | None) -> Path:
    """Save a crowd as npz (item, annotator, label, truth), and return its path."""
    sizes = SIZES[name]
    if workload:
        made, _ = load_function(workload, "gen")(*sizes, feats=False)
        made["annotator"] = made["worker"]
    else:
        made = simple_crowd(*sizes)
    path = folder / f"{name}.npz"
    columns = {part: made[part] for part in ("item", "annotator", "label", "truth")}
    np.savez(path, **columns, sizes=np.array(sizes[:3]))
    return path


def simple_crowd(n_items: int, n_annotators: int, n_classes: int, each: int) -> dict:
    """Annotators of different skill and activity, a tenth of them guessing."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=n_items)
    skill = np.where(rng.random(n_annotators) < 0.1, 0, rng.beta(6, 2.5, n_annotators))
    share = rng.permutation(1 / np.arange(1, n_annotators + 1) ** 0.8)
    item = np.repeat(np.arange(n_items), each)
    annotator = rng.choice(n_annotators, len(item), p=share / share.sum())
    guess = rng.integers(n_classes, size=len(item))
    label = np.where(rng.random(len(item)) < skill[annotator], truth[item], guess)
    return {"item": item, "annotator": annotator, "label": label, "truth": truth}


def load_function(path: Path, name: str):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


class Usage:
    """Time of a block, and its peak memory above what was in use before it."""

    def __enter__(self) -> Usage:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._read("VmRSS")
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter(), time.process_time()
        seconds, cpu_seconds = (end - start for end, start in zip(now, self._started, strict=True))
        megabytes = self._read("VmHWM") - self._before
        self.row = {"seconds": seconds, "cpu_seconds": cpu_seconds, "megabytes": megabytes}

    @staticmethod
    def _read(field: str) -> float:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"/proc/self/status has no {field}")


def run_ours(path: Path, method: str) -> dict:
    """Fit one of our methods in this process."""
    import warnings

    import torch

    from annotrace.aggregation import make
    from annotrace.labels import LabelTable

    warnings.simplefilter("ignore")
    data = np.load(path)
    sizes = dict(zip(("n_items", "n_annotators", "n_classes"), data["sizes"].tolist(), strict=True))
    table = LabelTable.from_codes(data["item"], data["annotator"], data["label"], **sizes)
    given = {} if method in WITH_DEFAULTS else {"max_iter": ITERATIONS, "tol": 0}
    with Usage() as usage:
        model = make(method, **given).fit(table)
    return {
        "accuracy": float((model.predict() == data["truth"]).mean()),
        **usage.row,
        "iterations": model.n_iter_,
        "version": f"torch {torch.__version__}, {torch.get_num_threads()} threads",
    }


def run_reference(path: Path, reference: str) -> dict:
    """Run the scipy.sparse reference in this process."""
    import scipy

    data, ds_scipy = np.load(path), load_function(Path(reference), "ds_scipy")
    item, annotator, label, truth = (data[k] for k in ("item", "annotator", "label", "truth"))
    with Usage() as usage:
        posterior, _ = ds_scipy(item, annotator, label, *data["sizes"].tolist(), iters=ITERATIONS)
    return {
        "accuracy": float((posterior.argmax(1) == truth).mean()),
        **usage.row,
        "iterations": ITERATIONS,
        "version": f"scipy {scipy.__version__}",
    }


def in_own_process(*arguments: object) -> dict:
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def contenders(name: str, path: Path, settings: argparse.Namespace) -> dict:
    """Return what runs on a crowd, each with the call that runs it."""
    found = {
        ("annotrace", method): lambda m=method: in_own_process("ours", path, m)
        for method in OURS[name]
    }
    if settings.reference:
        run = lambda: in_own_process("reference", path, settings.reference)  # noqa: E731
        found["scipy.sparse", "dawid-skene"] = run
    if settings.peers:
        python = make_environment(settings.peers)
        for method in PEERS.get(name, ()):
            iterations = None if method in WITH_DEFAULTS else ITERATIONS
            found["crowd-kit", method] = lambda m=method, n=iterations: run_peer(
                python, path, m, iterations=n
            )
    return found


def compare(name: str, path: Path, settings: argparse.Namespace) -> list[dict]:
    """Run every contender in turn, slow peers once; return a row for the best of each."""
    best: dict = {}
    for turn in range(settings.repeats):
        for (library, method), run in contenders(name, path, settings).items():
            if turn and library == "crowd-kit":
                continue
            load = os.getloadavg()[0]
            row = {"library": library, "method": method, "load": load} | run()
            known = best.get((library, method))
            if known is None or row.get("seconds", np.inf) < known.get("seconds", np.inf):
                best[library, method] = row
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    common = {"experiment": "aggregation-speed", "workload": name} | machine
    return [common | row for row in best.values()]


def print_rows(rows: list[dict]) -> None:
    """Print times, and ours as a fraction of those of the others for the same method."""
    times = {(r["workload"], r["library"], r["method"]): r.get("seconds") for r in rows}
    print(f"{'':2} {'library':13} {'method':13} {'s':>8} {'MB':>6} {'accuracy':>8}  ours / theirs")
    for row in rows:
        ours = times.get((row["workload"], "annotrace", row["method"]))
        if "error" in row:
            print(row["workload"], row["library"], row["method"], row["error"])
            continue
        ratio = "" if row["library"] == "annotrace" else f"{ours / row['seconds']:.4f}"
        print(
            f"{row['workload']:2} {row['library']:13} {row['method']:13} {row['seconds']:8.3f} "
            f"{row['megabytes']:6.0f} {row['accuracy']:8.4f}  {ratio}"
        )


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        kind, path, what = sys.argv[2:]
        print(json.dumps({"ours": run_ours}.get(kind, run_reference)(Path(path), what)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=SIZES, default=["S", "L", "W"])
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--workload", type=Path)
    parser.add_argument(
        "--peers", type=Path, help="virtual environment of crowd-kit, created if needed"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in settings.names:
            rows = compare(name, make_crowd(name, Path(folder), settings.workload), settings)
            print_rows(rows)
            if settings.out:
                with settings.out.open("a") as out:
                    out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
