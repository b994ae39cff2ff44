"""Experiments and their runs: what will be run, checked against what the user asked for."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from annotrace.data import LabelledSet
from annotrace.errors import InputError
from annotrace.experiments.options import FLAGS, Options
from annotrace.experiments.results import Result
from annotrace.experiments.settings import (
    NOT_SETTABLE,
    RECIPES,
    open_values,
    parameter_names,
    run_settings,
)

Run: TypeAlias = dict[str, Any]
"""One training: experiment, data, method, crowd, skill, density (labels per item), seed (of the
annotators, the labels, the weights and the split), protocol, settings, n_items (None for all),
keep (what the result holds beside measures: "confusion", "curve") and key."""

Split: TypeAlias = tuple[LabelledSet, LabelledSet]
"""Training data and test data."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its runs, how one is performed, and how the results are drawn.

    `recipe` names one of `settings.RECIPES`, None if nothing is trained. `load` takes the data
    folder or None; `runs` takes `Options` and returns dicts with method, crowd, skill, density and
    seed, and with settings that the experiment itself varies; `draw` takes results and a folder,
    and returns the files that it wrote. `keep` names what results hold beside measures, and
    `threads` the CPU threads, if all of them would be slower.
    """

    name: str
    data: str
    recipe: str | None
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
        If an option asks for something that no run can honour.
    """
    for name, _ in options.set:
        if name in NOT_SETTABLE:
            raise InputError(f"--set {name}: {NOT_SETTABLE[name]}.")
    runs = [_complete(experiment, run, options) for run in _chosen(experiment, options)]
    plan = list({run["key"]: run for run in runs}.values())
    used = {name for run in plan for name in parameter_names(run["method"])}
    for name, _ in options.set:
        if name not in used:
            raise InputError(f"--set {name}: no method of {experiment.name} has such a setting.")
    for words, asked, planned in _requests(options, plan):
        has = list(dict.fromkeys(map(str, planned)))
        if set(has) != set(map(str, asked)):
            there = ", ".join(has) or "nothing to choose there"
            raise InputError(f"{words}: {experiment.name} has {there}.")
    return plan


def _chosen(experiment: Experiment, options: Options) -> list[dict[str, Any]]:
    """Return the runs of the methods and densities that were asked for."""
    runs = experiment.runs(options)
    choices: dict[str, tuple[str, Sequence[Any]]] = {
        "--methods": ("method", options.methods),
        "--densities": ("density", options.densities),
    }
    for flag, (name, asked) in choices.items():
        has = list(dict.fromkeys(run[name] for run in runs))
        if unknown := [str(value) for value in asked if value not in has]:
            there = ", ".join(map(str, has))
            raise InputError(f"{flag} {','.join(unknown)}: {experiment.name} has {there}.")
        runs = [run for run in runs if not asked or run[name] in asked]
    return runs


def _complete(experiment: Experiment, run: dict[str, Any], options: Options) -> Run:
    settings = {}
    if experiment.recipe is not None:
        recipe, varied = RECIPES[experiment.recipe][options.protocol], run.get("settings", {})
        settings = run_settings(recipe, run["method"], run["density"], varied, options)
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


def _requests(
    options: Options, plan: list[Run]
) -> Iterator[tuple[str, tuple[Any, ...], list[Any]]]:
    """Yield each option as typed, the values that it asks for, and those of the plan."""
    seeds = defaultdict(set)
    for run in plan:
        seeds[run["method"], run["crowd"], run["skill"], run["density"]].add(run["seed"])
    planned: dict[str, list[Any]] = {
        "protocol": [run["protocol"] for run in plan],
        "seeds": [len(own) for own in seeds.values()],
        "skills": [run["skill"] for run in plan],
        "select": open_values("select", options.select, plan, options),
        "vanilla_decay": [options.vanilla_decay for run in plan if run["method"] == "vanilla"],
        "limit_items": [run["n_items"] for run in plan],
    }
    for flag in FLAGS:
        asked = getattr(options, flag.name)
        if flag.name in planned and asked not in (None, ()):
            values = asked if isinstance(asked, tuple) else (asked,)
            has = [value for value in planned[flag.name] if value is not None]
            yield f"{flag.flag} {','.join(map(str, values))}", values, has
    last = dict(options.set)
    for name, value in options.set:
        yield f"--set {name}={value}", (value,), open_values(name, last[name], plan, options)
