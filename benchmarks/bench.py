"""Ratios to other libraries, and growth with labels, annotators, classes and processes, in one run.

::

    python benchmarks/bench.py --out results/bench.jsonl      # `make bench`
    python benchmarks/bench.py S labels --labels 10000 20000000

Parts are crowds (S, M, L, W), on which all libraries compete, and curves of our own methods. Every
contender runs in a process of its own with one thread, in turn; the fewest CPU seconds of three
runs count, and those that take longer than ten seconds run once. Dawid-Skene, and our default,
run 20 iterations. Other libraries get virtual environments in runs/peers, and what cannot be
installed or needs more memory or time than allowed is a row that says so. A part in the file of
--out is replaced by the new one. `docs/generated.py` draws the curves into the docs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aggregation_speed import ITERATIONS, SIZES
from bench_plan import CURVES, LABELS, PEERS, Case, Sizes, distinct_labels, plan
from distributed import launch
from peers import make_environment

HERE = Path(__file__).parent
Row = dict[str, Any]

INSTALLS = {
    "crowd-kit": (),
    "cleanlab": (["cleanlab"],),
    "scikit-activeml": (["scikit-activeml"],),
    "peerannot": (
        ["numpy", "pandas", "scipy", "sparse", "pydantic", "tqdm"],
        ["--no-deps", "peerannot"],
    ),
}
"""Arguments of `pip install`; those of crowd-kit are in `peers.py`."""

SLOW = 10.0
"""CPU seconds from which a contender runs only once."""

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


@dataclass(frozen=True)
class Limits:
    """What a contender may use beyond its imports."""

    gigabytes: float
    seconds: float


def compete(cases: Iterable[Case], run: Callable[[Case], Row], repeats: int) -> list[Row]:
    """Run cases in turn, slow and failing ones once; return the fastest row of each."""
    best: dict[Case, Row] = {}
    listed = list(cases)
    for _ in range(repeats):
        for case in listed:
            known = best.get(case)
            if known is not None and ("stopped" in known or known["cpu_seconds"] > SLOW):
                continue
            row = run(case)
            if known is None or row.get("cpu_seconds", np.inf) < known["cpu_seconds"]:
                best[case] = row
    return [best[case] for case in listed]


class Runner:
    """Runs cases in processes of their own, on crowds that it simulates in a folder.

    Parameters
    ----------
    folder : Path
        For the crowds.
    pythons : dict
        By library, the interpreter of its environment, or why there is none.
    limits : Limits
    reference : Path, optional
        A file with functions `ds_scipy` and `ds_numpy`.
    """

    def __init__(
        self,
        folder: Path,
        pythons: dict[str, Path | str],
        limits: Limits,
        reference: Path | None = None,
    ) -> None:
        self.folder, self.pythons, self.limits = folder, pythons, limits
        self.reference = reference

    def __call__(self, case: Case) -> Row:
        """Return the row of a case, also if it fails."""
        load = round(os.getloadavg()[0], 1)
        about = asdict(case) | {"load": load, "cores": os.cpu_count(), "threads": 1}
        about |= {"python": platform.python_version(), "limits": asdict(self.limits)}
        return about | self._measure(case)

    def _measure(self, case: Case) -> Row:
        python = self.pythons.get(case.library, Path(sys.executable))
        if isinstance(python, str):
            return {"stopped": "install", "message": python}
        path = self._crowd(case.sizes)
        try:
            if case.part == "processes":
                command = [str(HERE / "distributed.py"), "aggregate", str(path), case.method]
                done = launch(command, case.n_processes)
            else:
                done = self._alone(case, python, path)
        except subprocess.TimeoutExpired as error:
            return {"stopped": "time", "message": f"ended after {error.timeout:g} s"}
        if done.returncode:
            return why_stopped(done.returncode, done.stderr)
        found = json.loads(done.stdout.strip().splitlines()[-1])
        return {k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}

    def _alone(self, case: Case, python: Path, path: Path) -> subprocess.CompletedProcess[str]:
        allowed = asdict(self.limits) | {"reference": self.reference}
        options = [f"--{name}={value}" for name, value in allowed.items() if value is not None]
        command = [str(python), str(HERE / "contenders.py"), case.library, case.method, str(path)]
        return subprocess.run(
            [*command, str(ITERATIONS), *options],
            capture_output=True,
            text=True,
            env=os.environ | ONE_THREAD,
            # The limit is one of processor time; on a busy machine that takes longer.
            timeout=10 * self.limits.seconds + 300,
        )

    def _crowd(self, sizes: Sizes) -> Path:
        path = self.folder / f"{'-'.join(map(str, sizes))}.npz"
        if not path.exists():
            np.savez(path, **distinct_labels(sizes), sizes=np.array(sizes[:3]))
        return path


def why_stopped(returncode: int, stderr: str) -> Row:
    """Return what ended a process, and its last words."""
    lines = stderr.strip().splitlines() or [f"ended with status {returncode}"]
    # A progress bar may come after the error.
    last = [line for line in lines if re.match(r"[\w.]+Error\b", line)] or lines
    message = last[-1][:200]
    if returncode == -signal.SIGXCPU:
        return {"stopped": "time", "message": "the limit of processor time"}
    is_memory = re.search(r"MemoryError|alloc", message)
    return {"stopped": "memory" if is_memory else "error", "message": message}


def install(libraries: Iterable[str], folder: Path) -> dict[str, Path | str]:
    """Make the environments of libraries, all at once; return interpreters, or why not."""

    def environment(library: str) -> Path | str:
        try:
            return make_environment(folder / library, *INSTALLS[library])
        except (OSError, subprocess.CalledProcessError) as error:
            return f"not installed: {error}"[:200]

    listed = list(libraries)
    with ThreadPoolExecutor() as pool:
        return dict(zip(listed, pool.map(environment, listed), strict=True))


def replace_parts(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to a file of JSON lines instead of those that it has of the same parts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    parts = {row["part"] for row in rows}
    kept = [line for line in lines if json.loads(line)["part"] not in parts]
    text = "".join(f"{line}\n" for line in [*kept, *map(json.dumps, rows)])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def print_rows(rows: Sequence[Row]) -> None:
    """Print CPU seconds, memory and accuracy, with time and memory as multiples of ours."""
    ours = {row["method"]: row for row in rows if row["library"] == "annotrace"}
    for row in rows:
        sizes = " x ".join(f"{n:,}" for n in row["sizes"][:3])
        line = f"{row['part']:10} {row['library']:16} {row['method']:12} {sizes:28}"
        if "stopped" in row:
            print(f"{line} {row['stopped']}: {row['message']}")
            continue
        line += f" {row['cpu_seconds']:9.3f} s {row['megabytes']:7.0f} MB {row['accuracy']:.4f}"
        if row["library"] != "annotrace" and "cpu_seconds" in ours[row["method"]]:
            line += f"  {row['cpu_seconds'] / ours[row['method']]['cpu_seconds']:.2f} x ours"
        print(line, flush=True)


def main() -> None:
    parts = (*SIZES, *CURVES)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=parts, help=f"of {', '.join(parts)}")
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS, help="of that curve")
    parser.add_argument("--reference", type=Path, help="file with `ds_scipy` and `ds_numpy`")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=6, help="of memory for a contender")
    parser.add_argument("--seconds", type=float, default=240, help="of processor time")
    parser.add_argument("--peers", type=Path, default=Path("runs/peers"))
    parser.add_argument("--out", type=Path, help="JSON lines")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(parts):
        parser.error(f"There is no part {', '.join(sorted(unknown))}.")
    if given.reference is not None and not given.reference.is_file():
        print(f"{given.reference} does not exist: the references are left out.")
        given.reference = None
    pythons = install(PEERS, given.peers.resolve()) if set(given.parts) & set(SIZES) else {}
    limits = Limits(given.gigabytes, given.seconds)
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(Path(folder), pythons, limits, given.reference)
        for part in given.parts:
            cases = plan(part, labels=given.labels, references=given.reference is not None)
            rows = compete(cases, run, given.repeats)
            print_rows(rows)
            if given.out:
                replace_parts(given.out, rows)


if __name__ == "__main__":
    main()
