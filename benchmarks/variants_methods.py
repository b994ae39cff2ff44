"""The methods of `benchmarks/variants.py`, by their specifications, and one run.

A specification is ``NAME[+recipe][:parameter=value,...]``: the short name of a method, "+recipe"
for ``recipe="default"``, and any parameters, such as ``auto:n_iter=3,mixup=0.5``. Values are
Python literals; anything else is text.
"""

from __future__ import annotations

import ast
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from variants_crowds import IMAGES, Crowd, read_crowd
from variants_labels import keep_labels
from variants_rows import Job, Row, new_row, pack

import annotrace as at
from annotrace.errors import InputError

RECIPE = "+recipe"
LEFT_OUT = ("oracle", "crossfit", "item-dependent")
"""Methods that need the truth, that are `auto`, and that have its classifier."""
SEVERAL = {"geo-crowd-layer": ("volume=F", "volume=W")}
"""Methods with more than one default: their parameters."""


class MethodSpec(NamedTuple):
    """A method, whether the recipe trains it, and its parameters."""

    name: str
    recipe: bool
    params: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> MethodSpec:
        """Read a specification, and check that there are such a method and such parameters."""
        head, _, given = text.partition(":")
        pairs = [part.partition("=") for part in given.split(",") if part]
        params = {name.strip(): _value(value.strip()) for name, _, value in pairs}
        spec = cls(head.removesuffix(RECIPE), head.endswith(RECIPE), params)
        if unknown := sorted({*spec._all_params()} - {*at.make(spec.name).get_params()}):
            raise InputError(f"{text}: {spec.name} has no parameter {', '.join(unknown)}.")
        return spec

    def make(self, **params: Any) -> Any:
        """Return a new estimator."""
        return at.make(self.name, **{**params, **self._all_params()})

    def _all_params(self) -> dict[str, Any]:
        return {**({"recipe": "default"} if self.recipe else {}), **self.params}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def default_specs() -> list[str]:
    """Return the specifications of every method at its defaults, except those left out."""
    names = [entry.name for entry in at.list_methods() if entry.name not in LEFT_OUT]
    return [
        ":".join(filter(None, (name, params)))
        for name in names
        for params in SEVERAL.get(name, ("",))
    ]


def with_recipe(spec: str) -> str | None:
    """Return a specification with the recipe; None if there is none, or by default the recipe."""
    name, colon, params = spec.partition(":")
    model = at.make(name)
    if "recipe" not in model.get_params() or model.recipe_by_default or name.endswith(RECIPE):
        return None
    return f"{name}{RECIPE}{colon}{params}"


def run(job: Job, data: Path, device: str) -> Row:
    """Fit a method to a cell and return its row; an error is a result, too."""
    try:
        found = _measure(job, data, device)
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    versions = {"annotrace": at.__version__, "torch": torch.__version__}
    return new_row(job, {**found, "versions": versions})


def _measure(job: Job, data: Path, device: str) -> Row:
    name, variant, seed = job.cell
    crowd = read_crowd(name, data, seed)
    table = keep_labels(crowd.table, crowd.y, variant, seed)
    chosen = device if name in IMAGES else "cpu"
    model = MethodSpec.parse(job.method).make(random_state=seed, device=chosen)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(crowd.X, table)
    seconds = round(time.perf_counter() - started, 2)
    sizes = {"items": table.n_items, "labels": table.n_labels}
    return {
        **_score(model, crowd),
        **_held_out(model),
        **sizes,
        "seconds": seconds,
        "device": chosen,
    }


def _score(model: Any, crowd: Crowd) -> Row:
    """Return the accuracy of the classifier, and of the posterior if there is one."""
    correct = model.predict(crowd.X_test) == crowd.y_test
    found = {
        "accuracy": round(float(correct.mean()), 6),
        "test_part": crowd.test_part,
        "n_test": len(correct),
        "correct": pack(correct),
    }
    if hasattr(model, "posterior_"):
        share = float(np.mean(model.result_.estimate == crowd.y))
        found["posterior_accuracy"] = round(share, 6)
    return found


def _held_out(model: Any) -> Row:
    """Return the held-out criteria that a fit leaves: losses per label, lower is better."""
    losses = [epoch.held_out for epoch in model.history_ if epoch.held_out is not None]
    found = {"held_out_loss": round(float(min(losses)), 6)} if losses else {}
    if getattr(model, "label_loss_", None):
        found["label_loss"] = round(float(model.label_loss_[-1]), 6)
    return found
