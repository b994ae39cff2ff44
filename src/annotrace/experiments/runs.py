"""A run, an experiment, and the settings that both are made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

import torch

from annotrace.data import LabelledSet
from annotrace.errors import InputError
from annotrace.experiments.options import Options
from annotrace.methods import CrossFittedEM, CrowdEstimator, GeneralizedEM
from annotrace.methods.registry import METHODS, estimator_class
from annotrace.parameters import check_parameters

Result: TypeAlias = dict[str, Any]
"""A line of results.jsonl."""

Split: TypeAlias = tuple[LabelledSet, LabelledSet]
"""What is learned from, and what is tested on."""

VARIANTS = {"no-trace": ("trace", {"lam": 0.0})}
"""Rows of the paper's tables that are another method with a setting."""

TRAINED_ONCE = {"pool": False, "mixup": 0.0, "restarts": 1, "calibrate": False}
"""The trace without mixtures of images, with one start and as it was trained, like the others."""

# The paper does not tell T and G for MNIST; these are those of its cardiac experiments.
PUBLISHED: dict[str, dict[str, Any]] = {
    "gem": {"steps": 10, "smoothing": 0.0},
    "mbem": {"steps": 10, "smoothing": 0.0},
    "vanilla": {"weight_decay": 1e-4},
}
"""Settings of single methods by protocol "paper", where an experiment has no others."""

CHOOSE_BY_HELD_OUT_LABELS = ("auto", "crossfit")
"""Methods to which `select` says nothing."""


@dataclass(frozen=True)
class Run:
    """One training, told so that it can be done again.

    Attributes
    ----------
    experiment : str
        Which asked for it. Not part of `key`: what two experiments share is done once.
    data : str
    method : str
        A short name, or one of `VARIANTS`.
    crowd : str
        One that `crowds.confusion_of` knows.
    skill : float or None
        Mean skill of the crowd, where it has one.
    density : int
        Labels an item.
    seed : int
        Draws the crowd, the labels, the starting weights and the held-out part.
    protocol : str
    settings : mapping
        Of the estimator.
    n_items : int or None
        How many items to learn from, if not all.
    keep : tuple of str
        What the result holds beside figures: "confusion", "curve".
    """

    experiment: str
    data: str
    method: str
    crowd: str
    skill: float | None
    density: int
    seed: int
    protocol: str
    settings: Mapping[str, Any]
    n_items: int | None = None
    keep: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name of the run: readable, and different wherever anything in it differs.

        What is left to the library is not in it: defaults, and the version that they are of.
        """
        told = {name: value for name, value in asdict(self).items() if name != "experiment"}
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]
        skill = "" if self.skill is None else f"{self.skill:g}/"
        return f"{self.data}/{self.crowd}/{skill}{self.density}/{self.method}/{self.seed}/{digest}"


@dataclass(frozen=True)
class Experiment:
    """A table or figure: what must be run for it, and how it is drawn.

    Attributes
    ----------
    name : str
    load : callable
        From the data folder, or None, to what is learned from and tested on.
    plan : callable
        From `Options` to runs.
    perform : callable
        From a run, the data and a device to a result.
    draw : callable
        From results and a folder to the files written there; needs matplotlib.
    threads : int or None
        CPU threads to use, where all of them would be slower.
    """

    name: str
    load: Callable[[Path | None], Split]
    plan: Callable[[Options], list[Run]]
    perform: Callable[[Run, Split, torch.device], Result]
    draw: Callable[[list[Result], Path], list[Path]]
    threads: int | None = None


@dataclass(frozen=True)
class Recipe:
    """How the methods of an experiment are trained by one protocol.

    Attributes
    ----------
    common : mapping
        Settings of every method that has them.
    by_method : mapping
        Further settings of one method, and of its variants.
    by_density : mapping
        Further settings for so many labels an item.
    """

    common: Mapping[str, Any]
    by_method: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    by_density: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def settings(self, method: str, density: int, options: Options) -> dict[str, Any]:
        """Give the settings of a run, but not those asked for that it would have anyway.

        So that to ask for a default is to ask for the same run. EM has no more steps than epochs.
        """
        estimator = find_method(method)[0]
        own = {**self.by_method.get(estimator.method, {}), **self.by_method.get(method, {})}
        general = {**self.common, **self.by_density.get(density, {})}
        asked: dict[str, Any] = dict(options.set)
        if options.select is not None:
            asked["select"] = options.select
        known = setting_names(method)
        usual = {name: value for name, value in {**general, **own}.items() if name in known}
        wanted = {**asked, **settled(method, options)}
        changed = {name: value for name, value in wanted.items() if name in known}
        plain, model = estimator(**usual), estimator(**{**usual, **changed})
        check_parameters(model)
        settings = usual | {
            name: value
            for name, value in changed.items()
            if _in_use(model, name) != _in_use(plain, name)
        }
        if isinstance(model, GeneralizedEM) and model.steps > (most := epochs_of(model)):
            if "steps" in asked:
                raise InputError(f"--set steps={model.steps}: {method} has {most} epochs to share.")
            settings["steps"] = most
        return settings


def epochs_of(model: CrowdEstimator) -> int:
    """Give how many epochs a training has, by its settings or else by its protocol."""
    return model._settings(0).epochs


def setting_names(method: str) -> set[str]:
    """Name the settings that a method or variant has; none where nothing is trained."""
    name, _ = VARIANTS.get(method, (method, {}))
    return {each.name for each in fields(METHODS[name])} if name in METHODS else set()


def _in_use(model: CrowdEstimator, name: str) -> Any:
    """Give what a training goes by: a setting as it is, or else as the protocol has it."""
    value = getattr(model, name)
    if value is not None:
        return value
    # Cross-fitted EM finds its epochs, and what it starts from has no part in the paper's protocol.
    if isinstance(model, CrossFittedEM) and (name == "epochs" or model.protocol == "paper"):
        return None
    return getattr(model._settings(0), name, getattr(model._protocol(), name, None))


def settled(method: str, options: Options) -> dict[str, Any]:
    """Give the settings of a method that ``--set`` and ``--select`` leave as they are."""
    settings = find_method(method)[1]
    if method in CHOOSE_BY_HELD_OUT_LABELS:
        settings["select"] = "likelihood"
    if method == "vanilla" and options.vanilla_decay is not None:
        settings["weight_decay"] = options.vanilla_decay
    return settings


def find_method(method: str) -> tuple[type[CrowdEstimator], dict[str, Any]]:
    """Give the class of a method or variant, and the settings that make the variant."""
    name, settings = VARIANTS.get(method, (method, {}))
    return estimator_class(name), dict(settings)


def chosen_methods(methods: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """Give the methods asked for, in the order of the experiment."""
    unknown = [name for name in options.methods if name not in methods]
    if unknown:
        raise InputError(
            f"--methods {','.join(unknown)}: this experiment has {', '.join(methods)}."
        )
    return tuple(name for name in methods if not options.methods or name in options.methods)


def chosen_densities(densities: Sequence[int], options: Options) -> tuple[int, ...]:
    """Give the numbers of labels an item that were asked for, in the order of the experiment."""
    unknown = [density for density in options.densities if density not in densities]
    if unknown:
        raise InputError(
            f"--densities {unknown[0]}: this experiment has {', '.join(map(str, densities))}."
        )
    return tuple(n for n in densities if not options.densities or n in options.densities)
