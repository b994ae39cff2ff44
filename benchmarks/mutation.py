"""Mutation testing: change the code one expression at a time, and see whether a test fails.

usage: python benchmarks/mutation.py crowd [--sample N] [--seed 0] [--workers 2]
                                     [--tests tests/crowd ...] [--out runs/mutants.jsonl]

Mutates the files of src/annotrace/crowd (or another folder, or one file of it); mutants.py beside
this file has the operators. A first run of the tests, `tests/crowd` by default, records the lines
that each test executes. Each mutant then runs in a child process, against the tests that execute
its line, the fastest first, up to the first failure or 20 s of tests. The children are forks of a
process that has imported torch and pytest, but not annotrace: a mutant costs little more than its
tests.

A mutant is killed if a test fails, or if the tests take more than ten times their processor time
("timeout"). It survives if all tests pass, or if no test executes its line. The script prints the
survivors and the share of killed mutants. With the same `--out`, mutants that were killed before
are not run again, unless their file or mutants.py has changed. Linux and macOS only.
"""

from __future__ import annotations

import os

# Before torch is imported, which reads them once.
os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

import argparse
import gc
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from mutants import Mutant, find_mutants, mutate

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
OPERATORS = ROOT / "benchmarks" / "mutants.py"
IMPORTED = (
    "torch",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.base",
    "pandas",
)
IMPORTED_IF_THERE = ("hypothesis", "polars", "narwhals", "pyarrow", "matplotlib", "click", "rich")
MEMORY = 16 * 2**30
# A mutant runs against tests of so many seconds in total; most fail in the first few.
ENOUGH_SECONDS = 20.0


@dataclass
class Test:
    """A test, the processor time that it takes, and the lines of each file that it executes."""

    name: str
    seconds: float
    lines: dict[str, set[int]]


class Recorder:
    """A plugin of pytest that records the lines of some files, and the time, of every test."""

    def __init__(self, files: set[str]) -> None:
        self.files, self.tests = files, []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record one test."""
        test = Test(item.nodeid, time.process_time(), defaultdict(set))

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            name = frame.f_code.co_filename
            if name not in self.files:
                return None
            test.lines[name].add(frame.f_lineno)
            return trace

        threading.settrace(trace)
        sys.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            test.seconds = time.process_time() - test.seconds
            self.tests.append(test)


class QuickFailures:
    """A plugin of pytest: hypothesis reports the first failure that it finds, as it is."""

    def pytest_sessionstart(self) -> None:
        """Turn the search for simpler failures off."""
        try:
            from hypothesis import Phase, settings
        except ImportError:
            return
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutation", settings.default, phases=phases, database=None)
        settings.load_profile("mutation")


class MutantLoader(SourceFileLoader, importlib.abc.MetaPathFinder):
    """Loads the mutant instead of the module."""

    def __init__(self, module: str, mutant: Mutant) -> None:
        super().__init__(module, mutant.file)
        self.mutant = mutant

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return a spec for the module of the mutant only."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the mutant, never that of a cached file."""
        return compile(mutate(Path(self.path).read_text(), self.mutant.number), self.path, "exec")


def run_tests(names: list[str], folder: Path, *plugins: object) -> int:
    """Run tests in this process, which is a child, and return pytest's exit status."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    # A rewrite of all assertions would take half of the time of a mutant.
    options += ["--assert=plain", "--tb=short"]
    base = f"--basetemp={folder / str(os.getpid())}"
    return int(pytest.main([*options, base, *names], plugins=[*plugins, QuickFailures()]))


def in_child(work: Callable[[], int], log: Path, limit: int) -> int:
    """Fork, call `work` for at most `limit` seconds of processor time; return the process id."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            # Whoever sleeps uses no processor time.
            signal.alarm(20 * limit)
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return process


def record_tests(paths: list[str], files: set[str], folder: Path) -> list[Test]:
    """Run all tests once, in a child, and return them with the lines that they execute."""
    out, log = folder / "tests.json", folder / "tests.log"

    def work() -> int:
        recorder = Recorder(files)
        status = run_tests(paths, folder, recorder)
        tests = [vars(test) for test in recorder.tests]
        out.write_text(json.dumps(tests, default=sorted))
        return status

    _, status = os.waitpid(in_child(work, log, 10_000), 0)
    if status != 0:
        sys.exit(f"The tests fail without any mutant:\n{log.read_text()[-4000:]}")
    return [Test(**test) for test in json.loads(out.read_text())]


def choose_tests(mutant: Mutant, tests: list[Test]) -> list[Test]:
    """Return the tests that execute a line of the mutant, the fastest first, while time lasts.

    Code outside functions runs on import: it concerns every test that executes the file, and those
    of the file's own tests that execute only methods that a decorator has made.
    """
    lines = set(range(mutant.line, mutant.end_line + 1))
    own = f"/test_{Path(mutant.file).name}::"

    def concerns(test: Test) -> bool:
        executed = test.lines.get(mutant.file, ())
        if mutant.in_function:
            return not lines.isdisjoint(executed)
        return bool(executed) or own in test.name

    chosen = [test for test in tests if concerns(test)]
    chosen.sort(key=lambda test: test.seconds)
    spent = list(accumulate(test.seconds for test in chosen))
    return [test for test, total in zip(chosen, spent, strict=True) if total <= ENOUGH_SECONDS]


class Runs:
    """Mutants that run in child processes, a few at a time."""

    def __init__(self, folder: Path, workers: int, out: Path | None) -> None:
        self.folder, self.workers, self.out = folder, workers, out
        self.running: dict[int, tuple[Mutant, list[Test]]] = {}
        self.outcomes: dict[Mutant, str] = {}

    def start(self, mutant: Mutant, tests: list[Test]) -> None:
        """Run a mutant as soon as a worker is free."""
        if not tests:
            self.finish(mutant, "survived", 0)
            return
        while len(self.running) >= self.workers:
            self.wait()
        module = ".".join(Path(mutant.file).relative_to(SOURCE).with_suffix("").parts)

        def work() -> int:
            sys.meta_path.insert(0, MutantLoader(module.removesuffix(".__init__"), mutant))
            return run_tests([test.name for test in tests], self.folder)

        limit = 20 + round(10 * sum(test.seconds for test in tests))
        log = self.folder / "mutant.log"
        self.running[in_child(work, log, limit)] = mutant, tests

    def wait(self) -> None:
        """Wait until a mutant has been tested."""
        process, status = os.wait()
        mutant, tests = self.running.pop(process)
        if os.WIFSIGNALED(status):
            timed_out = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
            outcome = "timeout" if timed_out else "killed"
        else:
            outcome = "survived" if os.WEXITSTATUS(status) == 0 else "killed"
        self.finish(mutant, outcome, len(tests))

    def finish(self, mutant: Mutant, outcome: str, n_tests: int) -> None:
        """Record an outcome."""
        self.outcomes[mutant] = outcome
        print(f"\r{len(self.outcomes)} {dict(Counter(self.outcomes.values()))}", end="", flush=True)
        if self.out is not None:
            record = {**describe(mutant), "outcome": outcome, "tests": n_tests}
            with self.out.open("a") as file:
                file.write(json.dumps(record) + "\n")


def describe(mutant: Mutant) -> dict[str, Any]:
    """Return a mutant as a record; the digest is that of its file and of the operators."""
    path = Path(mutant.file)
    source = path.read_bytes() + OPERATORS.read_bytes()
    return {
        "file": str(path.relative_to(ROOT)),
        "digest": hashlib.sha256(source).hexdigest()[:12],
        "number": mutant.number,
        "line": mutant.line,
        "old": mutant.old,
        "new": mutant.new,
    }


def killed_before(out: Path | None) -> dict[tuple[Any, ...], str]:
    """Return the outcome of the mutants of earlier runs that a test has killed."""
    if out is None or not out.exists():
        return {}
    records = [json.loads(line) for line in out.read_text().splitlines()]
    return {
        (record["file"], record["digest"], record["number"]): record["outcome"]
        for record in records
        if record["outcome"] != "survived"
    }


def draw_mutants(target: Path, sample: int | None, seed: int) -> list[Mutant]:
    """Return all mutants of a file or folder, or a random sample of them."""
    paths = sorted(target.rglob("*.py")) if target.is_dir() else [target]
    found = [mutant for path in paths for mutant in find_mutants(path)]
    if sample is None or sample >= len(found):
        return found
    return random.Random(seed).sample(found, sample)


def show(outcomes: dict[Mutant, str]) -> None:
    print()
    for mutant, outcome in sorted(outcomes.items(), key=lambda pair: (pair[0].file, pair[0].line)):
        if outcome == "survived":
            print(f"{Path(mutant.file).relative_to(ROOT)}:{mutant.line}")
            print(f"    - {mutant.old}\n    + {mutant.new}")
    n_survived = Counter(outcomes.values())["survived"]
    share = 1 - n_survived / max(len(outcomes), 1)
    print(f"{len(outcomes)} mutants, {dict(Counter(outcomes.values()))}: {share:.1%} killed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", help="a folder or file below src/annotrace")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--tests", nargs="+")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE))
    target = SOURCE / "annotrace" / options.target
    tests_of = options.tests or [f"tests/{Path(options.target).parts[0]}"]
    drawn, before = draw_mutants(target, options.sample, options.seed), killed_before(options.out)
    import_packages()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder), options.workers, options.out)
        tests = record_tests(tests_of, {mutant.file for mutant in drawn}, Path(folder))
        for mutant in drawn:
            key = tuple(describe(mutant)[part] for part in ("file", "digest", "number"))
            if key in before:
                runs.outcomes[mutant] = before[key]
            else:
                runs.start(mutant, choose_tests(mutant, tests))
        while runs.running:
            runs.wait()
    show(runs.outcomes)


def import_packages() -> None:
    """Import what the children need, except annotrace."""
    for name in IMPORTED:
        importlib.import_module(name)
    for name in IMPORTED_IF_THERE:
        if importlib.util.find_spec(name):
            importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    # pytest collects garbage before it ends: in a child, not that of the parent.
    gc.freeze()


if __name__ == "__main__":
    main()
