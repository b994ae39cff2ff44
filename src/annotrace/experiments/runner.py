"""Perform the runs of an experiment that results.jsonl does not have yet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from annotrace.data import LabelledSet
from annotrace.errors import AnnotraceError, SweepError
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment, Run, make_plan
from annotrace.experiments.results import FILE, Result, add_result, claim, read_results
from annotrace.experiments.settings import check_precision
from annotrace.labels.writing import check_writable
from annotrace.training import pick_device


def sweep(
    experiment: Experiment,
    options: Options,
    *,
    out: Path,
    data_dir: Path | None = None,
    device: str = "auto",
) -> list[Result]:
    """Perform the runs of an experiment that `out` does not have yet.

    Several processes may share a folder: none repeats what another has done or is doing.

    Parameters
    ----------
    experiment : Experiment
    options : Options
    out : Path
        Folder of results.jsonl; several experiments may share it.
    data_dir : Path, optional
        Folder of the images, for the experiments that need any.
    device : str

    Returns
    -------
    list of dict
        The results of the plan, in its order.

    Raises
    ------
    RunError
        Before the first run if `out` is not writable; later if a result could not be added.
    KeyboardInterrupt
        On Ctrl-C, with a message that says what is kept.
    SweepError
        At the end, if runs failed; the others are kept.
    """
    plan, path = make_plan(experiment, options), out / FILE
    if todo := _missing(plan, path):
        check_writable(out)
        chosen = pick_device(device)
        check_precision(options, chosen)
        if experiment.threads is not None:
            torch.set_num_threads(experiment.threads)
        out.mkdir(parents=True, exist_ok=True)
        train, test = (_first(part, todo[0]["n_items"]) for part in experiment.load(data_dir))
        sweep = _Sweep(lambda run: experiment.perform(run, (train, test), chosen), path, len(plan))
        sweep.perform_all(todo)
    return finished(experiment, options, out)


def finished(experiment: Experiment, options: Options, out: Path) -> list[Result]:
    """Return the results that exist of an experiment's plan, in the order of the plan."""
    there = {result["key"]: result for result in read_results(out / FILE)}
    plan = make_plan(experiment, options)
    return [there[run["key"]] for run in plan if run["key"] in there]


@dataclass
class _Sweep:
    """Performs runs one by one, beside other processes that do the same."""

    perform: Callable[[Run], Result]
    path: Path
    total: int
    done: int = 0
    performed: int = 0
    failed: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def perform_all(self, todo: list[Run]) -> None:
        self.done = self.total - len(todo)
        if self.done:
            _show(f"{self.done} of {self.total} runs exist already.")
        try:
            busy = [run for run in todo if not self.take(run, wait=False)]
            if busy:
                _show(f"Another process performs {len(busy)} of the runs; waiting.")
            for run in busy:
                self.take(run, wait=True)
        except KeyboardInterrupt:
            kept = self.total - len(_missing(todo, self.path))
            raise KeyboardInterrupt(
                f"Stopped; {kept} of {self.total} runs are kept in {self.path}. "
                "The same command resumes."
            ) from None
        if self.failed:
            raise SweepError(
                f"{len(self.failed)} of {self.total} runs failed, the first with: {self.failed[0]} "
                f"The others are in {self.path}; the same command repeats only the failed ones."
            )

    def take(self, run: Run, wait: bool) -> bool:
        """Perform a run unless it exists by now; return False if another process has it."""
        with claim(self.path.parent, run["key"], wait) as claimed:
            if claimed and _missing([run], self.path):
                if sys.stderr.isatty():  # overwritten by the line of the finished run
                    print(f"{_name(run)} ...", end="\r", file=sys.stderr, flush=True)
                try:
                    result = self.perform(run)
                except AnnotraceError as error:
                    self.failed.append(str(error))
                    _show(f"failed: {_name(run)}: {error}")
                    return True
                add_result(self.path, result)
                self.performed += 1
                self.show_done(run, f"{_measures(result)}  ({self.time_left()} left)")
            elif claimed:
                self.show_done(run, "done by another process")
            return claimed

    def show_done(self, run: Run, outcome: str) -> None:
        self.done += 1
        _show(f"[{self.done:{len(str(self.total))}}/{self.total}] {_name(run)}: {outcome}")

    def time_left(self) -> str:
        seconds = (time.monotonic() - self.started) / self.performed * (self.total - self.done - 1)
        return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _missing(runs: list[Run], path: Path) -> list[Run]:
    there = {result["key"] for result in read_results(path)}
    return [run for run in runs if run["key"] not in there]


def _first(items: LabelledSet, limit: int | None) -> LabelledSet:
    return items if limit is None else items.take(np.arange(min(limit, len(items.y))))


def _show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _name(run: Run) -> str:
    skill = "" if run["skill"] is None else f" {run['skill']:g}"
    labels = "1 label" if run["density"] == 1 else f"{run['density']} labels"
    return f"{run['method']}, {run['crowd']}{skill}, {labels}, seed {run['seed']}"


def _measures(result: Result) -> str:
    error = result["cm_error"]
    shown = "" if error is None else f", CM error x 100 {100 * error:.2f}"
    seconds = f", {result['seconds']:.1f} s" if "seconds" in result else ""
    return f"accuracy {result['accuracy']:.4f}{shown}{seconds}"
