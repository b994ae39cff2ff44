"""Kill commands at random moments, and run many at once; `make kills`.

Every command is a process of its own, killed with SIGKILL at a random file operation or at a random
time. Afterwards the folder must hold the old run or the new one, and the same command, resumed,
must end with what an undisturbed command wrote, to the last bit.
"""

import argparse
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib import import_module
from pathlib import Path

# Before torch is imported: processes that have started threads cannot be forked.
os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}

import numpy as np
import torch

import annotrace as at
from annotrace.cli.fit import CHECKPOINT
from annotrace.cli.main import main
from annotrace.errors import RunError
from annotrace.run_folder import RUN_FILES, locked
from annotrace.training import interruptible
from killing import count_operations, exit_after, is_killed_at

HELD = ("loadable", "resumable", "equal")
EQUAL = ("model.safetensors", "truth.csv", "annotators.csv", "confusion.npz")
COMMANDS = {
    "fit": "fit labels.csv --features features.npz --method trace --epochs 3 --no-report",
    "checkpoint": "fit labels.csv --features features.npz --epochs 2 --method crossfit --no-report",
    "overwrite": "aggregate labels.csv --overwrite",
    "save": "",
}


def write_crowd(seed: int, n_items: int = 45) -> None:
    """Write labels.csv and features.npz: three annotators, of whom one guesses."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_items) % 3
    X = 4 * np.eye(3)[truth] + rng.normal(size=(n_items, 3))
    np.savez("features.npz", X=X.astype(np.float32), items=np.arange(n_items).astype(str))
    reports = {"ann": truth, "bob": truth, "cy": rng.integers(3, size=n_items)}
    rows = [f"{k},{who},{label[k]}" for who, label in reports.items() for k in range(n_items)]
    Path("labels.csv").write_text("\n".join(["item,annotator,label", *rows]))


def work_of(kind: str, folder: Path) -> Callable[[], None]:
    """Return a function that runs a command, resumed if it was interrupted, or saves a model."""

    def work() -> None:
        if kind == "save":
            at.load("model").save(folder)
            return
        resume = "--resume" if (folder / CHECKPOINT).exists() else ""
        run(f"{COMMANDS[kind]} --out {folder} --quiet {resume}")

    return work


def import_all() -> None:
    """Import what commands import when they run, so that their processes need not."""
    for name in ("matplotlib.pyplot", "polars", "narwhals", "jinja2", "rich.table"):
        import_module(name)
    for name in ("aggregation", "methods", "report.page", "report.figures", "labels.reading"):
        import_module(f"annotrace.{name}")
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.zeros(2)
    torch.optim.Adam([weight], fused=True).step()  # imports the compiler


def run(command: str) -> None:
    """Run a command in this process."""
    main.main(command.split(), standalone_mode=False)


def finish(work: Callable[[], None]) -> bool:
    """Run a function in a process of its own; return whether it succeeds."""
    child = os.fork()
    if child == 0:
        exit_after(work)
    return os.waitpid(child, 0)[1] == 0


def kill_after(seconds: float, work: Callable[[], None]) -> bool:
    """Run a function in a process that is killed after some time; return whether it was."""
    child = os.fork()
    if child == 0:
        exit_after(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Return what the files of a run hold that is the same in every run of a command."""
    return {name: (folder / name).read_bytes() for name in EQUAL}


class Kind:
    """A command, what it writes undisturbed, how many operations on files and how long it takes."""

    def __init__(self, kind: str, old: Path) -> None:
        self.kind, self.folder, self.old = kind, Path(f"{kind}-run").absolute(), old
        self.overwrites = kind in ("overwrite", "save")
        self.reset()
        started = time.monotonic()
        assert finish(work_of(kind, self.folder))
        self.seconds = time.monotonic() - started
        self.expected = contents(self.folder)
        self.posterior = at.load(self.folder).posterior_
        self.reset()
        self.n_operations = count_operations(self.folder, work_of(kind, self.folder))

    def reset(self) -> None:
        """Empty the folder, or put the old run there if the command is to overwrite it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.overwrites:
            shutil.copytree(self.old, self.folder)

    def kill(self, rng: random.Random) -> Counter[str]:
        """Kill the command once, and return what holds afterwards."""
        work, was_killed = work_of(self.kind, self.folder), False
        while not was_killed:
            self.reset()
            if rng.random() < 0.5:
                was_killed = is_killed_at(rng.randrange(self.n_operations), self.folder, work)
            else:
                was_killed = kill_after(rng.uniform(0, self.seconds), work)
        is_new, is_whole = self.look()
        # A new run without a checkpoint is complete; the command would refuse to overwrite it.
        is_done = is_new and not self.overwrites and not (self.folder / CHECKPOINT).exists()
        is_resumable = is_done or finish(work)
        with locked(self.folder):
            left = {path.name for path in self.folder.iterdir()} - {".lock"}
        files = set(RUN_FILES) - ({"report.html"} if self.kind != "overwrite" else set())
        is_equal = left == files and contents(self.folder) == self.expected
        return Counter(loadable=is_whole, resumable=is_resumable, equal=is_equal)

    def look(self) -> tuple[bool, bool]:
        """Return whether the folder has the new run, and whether that, the old or rightly none."""
        try:
            found = at.load(self.folder).posterior_
        except RunError as error:
            return False, not self.overwrites and "no run here" in str(error)
        is_new = np.array_equal(found, self.posterior)
        return is_new, is_new or np.array_equal(found, at.load(self.old).posterior_)


def kill_often(n_kills: int, names: list[str], seed: int) -> bool:
    """Kill each kind of command in turn, print what held, and return whether all did."""
    rng = random.Random(seed)
    write_crowd(1)
    assert finish(lambda: run("aggregate labels.csv --out old --quiet"))
    assert finish(lambda: run("aggregate labels.csv --method one-coin --out model --quiet"))
    write_crowd(2)
    kinds = [Kind(kind, Path("old").absolute()) for kind in names]
    total: Counter[str] = Counter()
    for number in range(n_kills):
        kind = kinds[number % len(kinds)]
        found = kind.kill(rng)
        total += found
        if found.total() < len(HELD):
            print(f"kill {number}, {kind.kind}: {dict(found)}", flush=True)
    parts = ", ".join(f"{total[name]} {name}" for name in HELD)
    print(f"{n_kills} kills: {parts}", flush=True)
    return all(total[name] == n_kills for name in HELD)


def run_at_once(n_commands: int, n_folders: int) -> bool:
    """Run commands at once into fewer folders, and return whether one succeeds in each."""
    write_crowd(3)
    children: dict[int, tuple[int, int]] = {}
    for number in range(n_commands):
        rows = [f"{k},{who},{(k + number) % 3}" for who in "abc" for k in range(30)]
        Path(f"labels{number}.csv").write_text("\n".join(["item,annotator,label", *rows]))
    for number in range(n_commands):
        out = f"shared{number % n_folders}"
        child = os.fork()
        if child == 0:
            command = f"aggregate labels{number}.csv --out {out} --quiet"
            exit_after(lambda: run(command))  # noqa: B023
        children[child] = (number, number % n_folders)
    winners: dict[int, list[int]] = {folder: [] for folder in range(n_folders)}
    for _ in range(n_commands):
        child, status = os.wait()
        number, folder = children[child]
        if status == 0:
            winners[folder].append(number)
    return _check_winners(winners, n_commands)


def _check_winners(winners: dict[int, list[int]], n_commands: int) -> bool:
    """Print how many folders hold the whole run of the one command that succeeded."""
    n_whole = 0
    for folder, numbers in winners.items():
        path = Path(f"shared{folder}")
        if len(numbers) == 1 and {each.name for each in path.iterdir()} == set(RUN_FILES):
            labels = [str((k + numbers[0]) % 3) for k in range(30)]
            rows = (path / "truth.csv").read_text().splitlines()[1:]
            same = [row.split(",")[1] for row in rows] == labels
            n_whole += same and at.load(path).predict().tolist() == labels
    print(
        f"{n_commands} commands at once into {len(winners)} folders: "
        f"{sum(map(len, winners.values()))} succeeded, {n_whole} folders hold one whole run",
        flush=True,
    )
    return n_whole == len(winners)


def try_both() -> int:
    """Run both, and return 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kinds", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--commands", type=int, default=64)
    parser.add_argument("--folders", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    import_all()
    interruptible.CHECKPOINT_SECONDS = 0  # a checkpoint after every step
    # The system keeps what a killed process has written, so nothing need go to the disk.
    os.fsync = lambda handle: None
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        os.chdir(folder)
        is_whole = run_at_once(options.commands, options.folders)
        is_kept = kill_often(options.kills, options.kinds, options.seed)
        return 0 if is_kept and is_whole else 1


if __name__ == "__main__":
    sys.exit(try_both())
