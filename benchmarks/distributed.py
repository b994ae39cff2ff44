"""Several processes against one: deaths of processes, and speed.

    python benchmarks/distributed.py kills [--kills 20] [--seed 0] [--out RESULTS.jsonl]
    python benchmarks/distributed.py speed [--workload FILE] [--repeats 3] [--out RESULTS.jsonl]

`kills`: one of two processes kills itself at a random step of a fit; the run must end by itself
with one message, and with --resume end as the undisturbed fit. Every other resume has one process
or three.
`speed`: Dawid-Skene on a million items with five million labels, by one and by two processes of one
thread, from a table in memory to the result; CPU seconds are those of the process with most. FILE
of --workload has a function `gen`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from aggregation_speed import ITERATIONS, Usage, make_crowd

LIMIT = 60
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
FIT = (
    "fit labels.csv --features features.npz --method trace --structure full --epochs 6 --no-report"
)
N_STEPS = 2 * 6 * 15


def launch(command: list[str], n_processes: int) -> subprocess.CompletedProcess[str]:
    """Run a command by torchrun; a run that hangs is an error."""
    start = [*TORCHRUN, "--nproc-per-node", str(n_processes), "--rdzv-backend", "c10d"]
    start += ["--rdzv-endpoint", "127.0.0.1:0"]
    return subprocess.run(
        [*start, *command], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )


def write_crowd() -> None:
    """Write labels.csv and features.npz: ten annotators, two labels per item."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=1_000)
    X = 2 * np.eye(8)[truth] + rng.normal(size=(len(truth), 8))
    names = np.arange(len(truth)).astype(str)
    np.savez("features.npz", X=X.astype(np.float32), items=names)
    rows = ["item,annotator,label"]
    for item, true in enumerate(truth):
        for who in rng.choice(10, 2, replace=False):
            label = true if rng.random() < 0.3 + 0.07 * who else rng.integers(3)
            rows.append(f"{item},a{who},{label}")
    Path("labels.csv").write_text("\n".join(rows))


def fit(out: str, n_processes: int, *, resume: bool = False) -> bool:
    """Fit in a folder, undisturbed; return whether that has succeeded, and print if not."""
    command = ["-m", "annotrace", *FIT.split(), "--out", out, "--quiet", *["--resume"] * resume]
    ended = launch(command, n_processes)
    if ended.returncode:
        print(ended.stderr, file=sys.stderr)
    return ended.returncode == 0


def posterior(folder: str) -> np.ndarray:
    import annotrace as at

    return at.load(folder).posterior_


def work_until_killed(victim: str, step: int, where: str, arguments: list[str]) -> None:
    """Run a command as a process that kills itself, if it is the victim, at a step.

    The victim is a process, by its rank, or all of a host and the torchrun that has started them.
    """
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from annotrace.cli.main import main

    left = step

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            Path("killed").write_text(str(time.monotonic()))
            if victim == host:
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    host = f"host{os.environ['GROUP_RANK']}"
    if victim in (os.environ["RANK"], host):
        register = {
            "forward": register_module_forward_pre_hook,
            "step": register_optimizer_step_post_hook,
        }
        register[where](count)
    main(arguments)


def kill_once(rng: random.Random, expected: np.ndarray, n_after: int) -> dict:
    """Kill one of two processes at a random step, and resume with a number of processes."""
    shutil.rmtree("run", ignore_errors=True)
    victim, where = rng.randrange(2), rng.choice(["forward", "step"])
    # A forward pass calls several modules, which the hook counts one by one.
    step = rng.randrange(1, N_STEPS * (6 if where == "forward" else 1))
    worker = [str(Path(__file__).resolve()), "work", str(victim), str(step), where]
    ended = launch([*worker, *FIT.split(), "--out", "run", "--quiet"], 2)
    seconds = time.monotonic() - float(Path("killed").read_text())
    # A process that gets torchrun's SIGTERM before it notices the loss says that it stops for that.
    said = sum(ended.stderr.count(text) for text in ("Another process of", "Interrupted"))
    is_clean = ended.returncode != 0 and said == 1 and seconds < LIMIT
    if not is_clean:
        print(ended.stderr, file=sys.stderr)
    saved = Path("run/checkpoint.bin").exists()
    resumed = fit("run", n_after, resume=saved)
    difference = float(np.abs(posterior("run") - expected).max()) if resumed else None
    return {
        "what": "kill",
        "victim": victim,
        "at": f"{where} {step}",
        "seconds": round(seconds, 1),
        "clean": is_clean,
        "saved": saved,
        "resumed_with": n_after,
        "difference": difference,
    }


def kill_often(n_kills: int, seed: int, out: Path | None) -> None:
    fit("undisturbed", 2)
    expected, rng = posterior("undisturbed"), random.Random(seed)
    for number in range(n_kills):
        record(kill_once(rng, expected, (2, 1, 2, 3)[number % 4]), out)


def aggregate(path: str, method: str = "dawid-skene") -> None:
    """Time a method in the processes that torchrun has started; the first one prints.

    CPU seconds and megabytes are those of the process with most.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from annotrace.aggregation import make
    from annotrace.aggregation.together import fit_together
    from annotrace.distributed import joined
    from annotrace.labels import LabelTable

    warnings.simplefilter("ignore", ConvergenceWarning)
    with joined() as processes:
        table = None
        if processes.is_first:
            data = np.load(path)
            names = ("n_items", "n_annotators", "n_classes")
            sizes = dict(zip(names, data["sizes"].tolist(), strict=True))
            columns = (data[name] for name in ("item", "annotator", "label"))
            table = LabelTable.from_codes(*columns, **sizes)
        model = make(method, max_iter=ITERATIONS, tol=0)
        processes.any(False)
        with Usage() as usage:
            fit_together(model, table, None, processes)
        rows = processes.collect(usage.row)
        if processes.is_first:
            most = {kind: max(row[kind] for row in rows) for kind in ("cpu_seconds", "megabytes")}
            accuracy = float((model.predict() == data["truth"]).mean())
            found = usage.row | most | {"accuracy": accuracy, "iterations": model.n_iter_}
            print(json.dumps(found))


def compare_speed(workload: Path | None, repeats: int, out: Path | None) -> None:
    path = make_crowd("L", Path(), workload)
    for repeat in range(repeats):
        found = {}
        for n_processes in (1, 2):
            done = launch([str(Path(__file__).resolve()), "aggregate", str(path)], n_processes)
            done.check_returncode()
            found[n_processes] = json.loads(done.stdout.splitlines()[-1])
        line = {"what": "speed", "repeat": repeat, "load": round(os.getloadavg()[0], 1)}
        for kind in ("seconds", "cpu_seconds"):
            line |= {f"{kind}_{n}": round(each[kind], 2) for n, each in found.items()}
            line |= {f"ratio_of_{kind}": round(found[1][kind] / found[2][kind], 2)}
        record(line | {"accuracy": found[2]["accuracy"]}, out)


def record(line: dict, out: Path | None) -> None:
    print(json.dumps(line), flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> None:
    if sys.argv[1] == "work":
        work_until_killed(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:])
        return
    if sys.argv[1] == "aggregate":
        aggregate(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kills", "speed"])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workload", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out and options.out.resolve()
    workload = options.workload and options.workload.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_crowd()
        if options.what == "kills":
            kill_often(options.kills, options.seed, out)
        else:
            compare_speed(workload, options.repeats, out)


if __name__ == "__main__":
    main()
