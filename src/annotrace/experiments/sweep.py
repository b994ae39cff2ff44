"""Run a plan: what is in the file already is not run again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from annotrace.data import LabelledSet
from annotrace.errors import AnnotraceError, SweepError
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.progress import show_sweep
from annotrace.experiments.results import FILE, add_result, open_results, read_results
from annotrace.experiments.runs import Experiment, Result, Run
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
    KeyboardInterrupt
        On Ctrl-C, with a message that says what is kept.
    SweepError
        At the end, if runs failed: the others are kept.
    """
    plan = make_plan(experiment, options)
    path = out / FILE
    done = {result["key"] for result in open_results(path)}
    left = [run for run in plan if run.key not in done]
    if left:
        if experiment.threads is not None:
            torch.set_num_threads(experiment.threads)
        _do(experiment, left, len(plan), path, data_dir, pick_device(device))
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
    failed: list[str] = []
    with show_sweep(total, total - len(left)) as progress:
        for place, run in enumerate(left):
            progress.begin(run)
            try:
                result = experiment.perform(run, data, device)
            except AnnotraceError as error:
                failed.append(str(error))
                progress.fail(run, error)
                continue
            except KeyboardInterrupt:
                kept = total - len(left) + place - len(failed)
                raise KeyboardInterrupt(
                    f"Stopped; {kept} of {total} runs are kept in {path}. The same command goes on."
                ) from None
            add_result(path, result)
            progress.finish(run, result)
    if failed:
        raise SweepError(
            f"{len(failed)} of {total} runs failed, the first with: {failed[0]} The others are in "
            f"{path}; the same command tries these alone again."
        )


def _first(items: LabelledSet, limit: int) -> LabelledSet:
    return items.take(np.arange(min(limit, len(items.y))))
