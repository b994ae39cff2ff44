"""Experiments and their runs: what will be run, and by which settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from annotrace.data import LabelledSet
from annotrace.errors import InputError
from annotrace.experiments.options import Options
from annotrace.experiments.results import Result
from annotrace.experiments.settings import NOT_SETTABLE, SETTINGS, run_settings, setting_names

Run: TypeAlias = dict[str, Any]
"""One training: experiment, data, method, crowd, skill, density (labels per item), seed (of the
annotators, the labels, the weights and the split), protocol, settings, n_items (None for all),
keep (what the result holds beside measures: "confusion", "curve") and key."""

Split: TypeAlias = tuple[LabelledSet, LabelledSet]
"""Training data and test data."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its runs, how one is performed, and how the results are drawn.

    `settings` is a key of `settings.SETTINGS`, None if nothing is trained. `load` takes the data
    folder or None; `runs` takes `Options` and returns dicts with method, crowd, skill, density and
    seed, and with settings that the experiment itself varies; `draw` takes results and a folder,
    and returns the files that it wrote. `keep` names what results hold beside measures, and
    `threads` the CPU threads, if all of them would be slower.
    """

    name: str
    data: str
    settings: str | None
    load: Callable[[Path | None], Split]
    runs: Callable[[Options], list[dict[str, Any]]]
    perform: Callable[[Run, Split, torch.device], Result]
    draw: Callable[[list[Result], Path], list[Path]]
    keep: tuple[str, ...] = ()
    threads: int | None = None


def make_plan(experiment: Experiment, options: Options) -> list[Run]:
    """Return the runs of an experiment, each once.

    Raises
    ------
    InputError
        If an option asks for what the experiment does not have.
    """
    runs = experiment.runs(options)
    for flag, name, requested in (
        ("--methods", "method", options.methods),
        ("--densities", "density", options.densities),
        ("--skills", "skill", options.skills),
    ):
        known = list(dict.fromkeys(run[name] for run in runs))
        if unknown := [str(value) for value in requested if value not in known]:
            listed = ", ".join(str(value) for value in known if value is not None)
            raise InputError(
                f"{flag} {','.join(unknown)}: {experiment.name} has {listed or 'none to choose'}."
            )
        runs = [run for run in runs if not requested or run[name] in requested]
    _check_seeds(experiment, options, runs)
    _check_settings(experiment, options, runs)
    complete = [_complete(experiment, run, options) for run in runs]
    return list({run["key"]: run for run in complete}.values())


def _check_seeds(experiment: Experiment, options: Options, runs: list[dict[str, Any]]) -> None:
    group = {name: value for name, value in runs[0].items() if name != "seed"}
    n_seeds = sum(run == {**group, "seed": run["seed"]} for run in runs)
    if options.seeds not in (None, n_seeds):
        raise InputError(f"--seeds {options.seeds}: {experiment.name} has {n_seeds}.")


def _check_settings(experiment: Experiment, options: Options, runs: list[dict[str, Any]]) -> None:
    methods = {run["method"]: set(run.get("settings", {})) for run in runs}
    if options.vanilla_decay is not None and "vanilla" not in methods:
        raise InputError(f"--vanilla-decay: {experiment.name} has no vanilla network.")
    free = {name for method, varied in methods.items() for name in setting_names(method) - varied}
    for name in options.settings(""):
        if name in NOT_SETTABLE:
            raise InputError(f"--set {name}: {NOT_SETTABLE[name]}.")
        if name not in free:
            flag = "--select" if name == "select" and options.select else f"--set {name}"
            raise InputError(f"{flag}: no method of {experiment.name} has such a setting.")


def _complete(experiment: Experiment, run: dict[str, Any], options: Options) -> Run:
    settings = {}
    if experiment.settings is not None:
        layers, varied = SETTINGS[experiment.settings][options.protocol], run.get("settings", {})
        settings = run_settings(layers, run["method"], run["density"], varied, options)
    whole = {
        "data": experiment.data,
        "protocol": options.protocol,
        "n_items": options.limit_items,
        "keep": experiment.keep,
        **run,
        "settings": settings,
    }
    return {"key": key_of(whole), "experiment": experiment.name, **whole}


def key_of(run: Run) -> str:
    """Return the key of a run: readable, and different wherever anything in the run differs.

    Experiments share runs, so `experiment` is not part of it; nor are defaults of the library.
    """
    identity = {name: value for name, value in run.items() if name not in ("key", "experiment")}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]
    skill = "" if run["skill"] is None else f"{run['skill']:g}/"
    crowd = f"{run['data']}/{run['crowd']}/{skill}{run['density']}"
    return f"{crowd}/{run['method']}/{run['seed']}/{digest}"
