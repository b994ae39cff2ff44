"""Perform the runs of an experiment that results.jsonl does not have yet."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from annotrace.data import LabelledSet
from annotrace.errors import AnnotraceError, InputError, SweepError
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment, Run, Split, make_plan
from annotrace.experiments.results import FILE, Result, add_result, read_results
from annotrace.labels.writing import check_writable
from annotrace.training import pick_device

logger = logging.getLogger(__name__)


def sweep(
    experiment: Experiment,
    options: Options,
    *,
    out: Path,
    data_dir: Path | None = None,
    device: str = "auto",
    show: Callable[[str], object] = logger.info,
) -> list[Result]:
    """Perform the runs of an experiment that `out` does not have yet.

    Return the results of the plan, in its order. `out` is the folder of results.jsonl, which
    experiments may share, one after the other; `data_dir` has the images, if any are needed; `show`
    takes a line about every run, with the time left.

    Raises
    ------
    RunError
        Before the first run if `out` is not writable; later if a result could not be added.
    KeyboardInterrupt
        On Ctrl-C, with a message that says what is kept.
    SweepError
        At the end, if runs failed; the others are kept.
    """
    plan, done = make_plan(experiment, options), finished(experiment, options, out)
    keys = {result["key"] for result in done}
    todo = [run for run in plan if run["key"] not in keys]
    if not todo:
        return done
    check_writable(out)
    chosen = _device(device, options)
    if experiment.threads is not None:
        torch.set_num_threads(experiment.threads)
    out.mkdir(parents=True, exist_ok=True)
    if done:
        show(f"{len(done)} of {len(plan)} runs exist already.")
    train, test = (_first(part, todo[0]["n_items"]) for part in experiment.load(data_dir))
    _perform(experiment, todo, len(plan), (train, test), chosen, out / FILE, show)
    return finished(experiment, options, out)


def finished(experiment: Experiment, options: Options, out: Path) -> list[Result]:
    """Return the results that exist of an experiment's plan, in the order of the plan."""
    results = {result["key"]: result for result in read_results(out / FILE)}
    keys = [run["key"] for run in make_plan(experiment, options)]
    return [results[key] for key in keys if key in results]


def _device(name: str, options: Options) -> torch.device:
    device = pick_device(name)
    requested = dict(options.set).get("precision", "float32")
    if device.type == "cpu" and requested != "float32":
        raise InputError(
            f"--set precision={requested}: runs on a CPU use float32; give --device a GPU."
        )
    return device


def _perform(
    experiment: Experiment,
    todo: list[Run],
    total: int,
    data: Split,
    device: torch.device,
    path: Path,
    show: Callable[[str], object],
) -> None:
    """Perform runs and add their results; continue after those that fail."""
    started, kept, failed = time.monotonic(), total - len(todo), list[str]()
    try:
        for performed, run in enumerate(todo, 1):
            place = f"[{total - len(todo) + performed:{len(str(total))}}/{total}] {_name(run)}"
            try:
                result = experiment.perform(run, data, device)
            except AnnotraceError as error:
                failed.append(str(error))
                show(f"{place}: failed: {error}")
                continue
            add_result(path, result)
            kept += 1
            left = (time.monotonic() - started) / performed * (len(todo) - performed)
            show(f"{place}: {_measures(result)}  ({_duration(left)} left)")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Stopped; {kept} of {total} runs are kept in {path}. The same command resumes."
        ) from None
    if failed:
        raise SweepError(
            f"{len(failed)} of {total} runs failed, the first with: {failed[0]} The others are in "
            f"{path}; the same command repeats only the failed ones."
        )


def _first(items: LabelledSet, limit: int | None) -> LabelledSet:
    return items if limit is None else items.take(np.arange(min(limit, len(items.y))))


def _name(run: Run) -> str:
    skill = "" if run["skill"] is None else f" {run['skill']:g}"
    labels = "1 label" if run["density"] == 1 else f"{run['density']} labels"
    return f"{run['method']}, {run['crowd']}{skill}, {labels}, seed {run['seed']}"


def _measures(result: Result) -> str:
    error = result["cm_error"]
    shown = "" if error is None else f", CM error x 100 {100 * error:.2f}"
    seconds = f", {result['seconds']:.1f} s" if "seconds" in result else ""
    return f"accuracy {result['accuracy']:.4f}{shown}{seconds}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
