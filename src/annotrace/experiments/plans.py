"""What an experiment will run, held against what was asked of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

from annotrace.errors import InputError
from annotrace.experiments.options import FLAGS, Options
from annotrace.experiments.runs import Experiment, Run, setting_names, settled

_Asked: TypeAlias = tuple[str, tuple[Any, ...], list[Any]]
"""An option as typed, the values asked for, and those of the plan."""

_NOT_TO_SET = {
    "random_state": "give --seeds, the number of draws",
    "device": "give --device",
    "protocol": "give --protocol",
    "confusion": "the oracle has the matrices of its crowd",
    "callbacks": "a sweep has its own",
    "verbose": "a sweep shows its runs",
    "checkpoint": "a sweep goes on where it was",
    "warm_start": "every run begins anew",
}
"""Settings that are not for `--set`, and why."""


def make_plan(experiment: Experiment, options: Options) -> list[Run]:
    """Give the runs of an experiment, each once.

    Raises
    ------
    InputError
        If something was asked for that these runs do not have.
    """
    for name, _ in options.set:
        if name in _NOT_TO_SET:
            raise InputError(f"--set {name}: {_NOT_TO_SET[name]}.")
    plan = list({run.key: run for run in experiment.plan(options)}.values())
    used = {name for run in plan for name in setting_names(run.method)}
    unused = [name for name, _ in options.set if name not in used]
    if unused:
        raise InputError(f"--set {unused[0]}: no method of {experiment.name} has such a setting.")
    for words, asked, planned in [*_chosen(options, plan), *_set(options, plan)]:
        has = list(dict.fromkeys(map(str, planned)))
        if set(has) != set(map(str, asked)):
            there = ", ".join(has) or "nothing to choose there"
            raise InputError(f"{words}: {experiment.name} has {there}.")
    return plan


def _chosen(options: Options, plan: list[Run]) -> Iterator[_Asked]:
    """Give each flag that was typed, what it asks for, and what the plan has."""
    planned: dict[str, list[Any]] = {
        "protocol": [run.protocol for run in plan],
        "methods": [run.method for run in plan],
        "seeds": _draws(plan),
        "skills": [run.skill for run in plan],
        "densities": [run.density for run in plan],
        # Without held-out items the last epoch is kept, whatever would choose.
        "select": _values(
            "select",
            options.select,
            [run for run in plan if run.settings.get("validation") != 0],
            options,
        ),
        "vanilla_decay": [
            run.settings.get("weight_decay", options.vanilla_decay)
            for run in plan
            if run.method == "vanilla"
        ],
        "limit_items": [run.n_items for run in plan],
    }
    for flag in FLAGS:
        asked = getattr(options, flag.name)
        if flag.name in planned and asked not in (None, ()):
            values = asked if isinstance(asked, tuple) else (asked,)
            has = [value for value in planned[flag.name] if value is not None]
            yield f"{flag.flag} {','.join(map(str, values))}", values, has


def _set(options: Options, plan: list[Run]) -> Iterator[_Asked]:
    """Give the same of each setting."""
    last = dict(options.set)
    for name, value in options.set:
        yield f"--set {name}={value}", (value,), _values(name, last[name], plan, options)


def _values(name: str, asked: Any, plan: list[Run], options: Options) -> list[Any]:
    """Give the values of a setting in the runs whose methods leave it open.

    A run that does not have it was asked for what it does anyway.
    """
    having = [run for run in plan if name in setting_names(run.method)]
    free = [run for run in having if name not in settled(run.method, options)]
    return [run.settings.get(name, asked) for run in free]


def _draws(plan: list[Run]) -> list[int]:
    """Count the seeds of each method on each crowd."""
    seeds = defaultdict(set)
    for run in plan:
        seeds[run.method, run.crowd, run.skill, run.density].add(run.seed)
    return [len(own) for own in seeds.values()]
