"""Run a plan: what is in the file already is not run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from annotrace.data import LabelledSet
from annotrace.errors import AnnotraceError, InputError, SweepError
from annotrace.experiments.claims import claim
from annotrace.experiments.options import Options
from annotrace.experiments.performing import FLOAT32
from annotrace.experiments.plans import make_plan
from annotrace.experiments.progress import Lines, show_sweep
from annotrace.experiments.results import FILE, add_result, open_results, read_results
from annotrace.experiments.runs import Experiment, Result, Run
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
    """Do the runs of an experiment that `out` does not have yet.

    Several processes may share a folder: none does what another has done or is doing.

    Parameters
    ----------
    experiment : Experiment
    options : Options
    out : Path
        The folder of results.jsonl; several experiments may share it.
    data_dir : Path, optional
        Where the images are, for the experiments that need any.
    device : str

    Returns
    -------
    list of dict
        The results of the plan, in its order.

    Raises
    ------
    RunError
        Before the first run if `out` cannot be written to; later if a run could not be added.
    KeyboardInterrupt
        On Ctrl-C, with a message that says what is kept.
    SweepError
        At the end, if runs failed: the others are kept.
    """
    plan = make_plan(experiment, options)
    path = out / FILE
    there = _keys(path)
    left = [run for run in plan if run.key not in there]
    if left:
        check_writable(out)
        chosen = pick_device(device)
        _check_precision(options, chosen)
        if experiment.threads is not None:
            torch.set_num_threads(experiment.threads)
        open_results(path)
        _do(experiment, left, len(plan), path, data_dir, chosen)
    return finished(experiment, options, out)


def finished(experiment: Experiment, options: Options, out: Path) -> list[Result]:
    """Give the results that are there of an experiment's plan, in the order of the plan."""
    there = {result["key"]: result for result in read_results(out / FILE)}
    return [there[run.key] for run in make_plan(experiment, options) if run.key in there]


def _do(
    experiment: Experiment,
    left: list[Run],
    total: int,
    path: Path,
    data_dir: Path | None,
    device: torch.device,
) -> None:
    data = experiment.load(data_dir)
    if left[0].n_items is not None:
        data = (_first(data[0], left[0].n_items), _first(data[1], left[0].n_items))
    with show_sweep(total, total - len(left)) as progress:
        turns = _Turns(lambda run: experiment.perform(run, data, device), path, progress)
        try:
            elsewhere = [run for run in left if not turns.take(run, wait=False)]
            if elsewhere:
                progress.say(f"Another process is at {len(elsewhere)} of the runs; waiting.")
            for run in elsewhere:
                turns.take(run, wait=True)
        except KeyboardInterrupt:
            there = _keys(path)
            kept = total - sum(run.key not in there for run in left)
            raise KeyboardInterrupt(
                f"Stopped; {kept} of {total} runs are kept in {path}. The same command goes on."
            ) from None
    if failed := turns.failed:
        raise SweepError(
            f"{len(failed)} of {total} runs failed, the first with: {failed[0]} The others are in "
            f"{path}; the same command tries these alone again."
        )


@dataclass
class _Turns:
    """Does runs one by one beside other processes that do the same."""

    perform: Callable[[Run], Result]
    path: Path
    progress: Lines
    failed: list[str] = field(default_factory=list)

    def take(self, run: Run, wait: bool) -> bool:
        """Do a run unless it is there by now; False if another process is at it."""
        with claim(self.path.parent, run.key, wait) as mine:
            if not mine:
                return False
            if run.key in _keys(self.path):
                self.progress.skip(run)
                return True
            self.progress.begin(run)
            try:
                result = self.perform(run)
            except AnnotraceError as error:
                self.failed.append(str(error))
                self.progress.fail(run, error)
                return True
            add_result(self.path, result)
            self.progress.finish(run, result)
            return True


def _keys(path: Path) -> set[str]:
    return {result["key"] for result in read_results(path)}


def _check_precision(options: Options, device: torch.device) -> None:
    asked = dict(options.set).get("precision", FLOAT32)
    if device.type == "cpu" and asked != FLOAT32:
        raise InputError(
            f"--set precision={asked}: a sweep on a CPU trains in {FLOAT32}; leave it out, or give "
            "--device a GPU."
        )


def _first(items: LabelledSet, limit: int) -> LabelledSet:
    return items.take(np.arange(min(limit, len(items.y))))
