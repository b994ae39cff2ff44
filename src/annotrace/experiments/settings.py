"""Settings of the estimators. Experiments name no parameter of an estimator; this module does.

`RECIPES` holds the settings of every experiment by protocol. Where the paper does not report a
value, a comment says what was taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import torch

from annotrace.errors import InputError
from annotrace.experiments.options import Options
from annotrace.methods import CrossFittedEM, CrowdEstimator
from annotrace.methods.protocols import PROTOCOLS
from annotrace.methods.registry import METHODS, estimator_class
from annotrace.parameters import check_parameters
from annotrace.training import Settings


@dataclass(frozen=True)
class Recipe:
    """Settings of an experiment by one protocol; later groups take precedence.

    Attributes
    ----------
    common : mapping
        Settings of every method that has them.
    by_density : mapping
        Further settings for a number of labels per item.
    by_method : mapping
        Further settings of one method and its variants.
    """

    common: Mapping[str, Any] = field(default_factory=dict)
    by_density: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    by_method: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


FLOAT32 = "float32"
"""The precision of every run on a CPU."""

TRACE_WEIGHT, EM_STEPS = "lam", "steps"
"""The two parameters that figure 5 varies."""

VARIANTS = {"no-trace": ("trace", {TRACE_WEIGHT: 0.0})}
"""Rows of the paper's tables that are another method with a setting."""

TRAINED_ONCE = {"pool": False, "mixup": 0.0, "restarts": 1, "calibrate": False}
"""The paper's model alone: one training, no mixup, no calibration, as the other methods."""

# The paper does not report T and G for MNIST; these are those of its cardiac experiments.
_PAPER_METHODS = {
    "gem": {EM_STEPS: 10, "smoothing": 0.0},
    "mbem": {EM_STEPS: 10, "smoothing": 0.0},
    "vanilla": {"weight_decay": 1e-4},
}
_PAPER = {"protocol": "paper", "select": "truth"}
_WARM_BF16 = {"schedule": "warm-cosine", "precision": "bf16"}

RECIPES: dict[str, dict[str, Recipe]] = {
    "digits": {"paper": Recipe(_PAPER, by_method=_PAPER_METHODS), "fast": Recipe()},
    "mnist": {
        "paper": Recipe({**_PAPER, "backbone": "cnn"}, by_method=_PAPER_METHODS),
        # Without the warm-up most ReLUs of two layers were dead after one epoch. Matrices that
        # learn 10 times as fast as the network converged before it separated the classes. (Both
        # were measured before convolutions used He's initialisation.) At the published weight the
        # trace lowers a diagonal of .35 by .02, most of the remaining error of the matrices.
        "fast": Recipe(
            {**_WARM_BF16, "backbone": "cnn", "batch_size": 200, "lr": 3e-3, "confusion_lr": 3.0},
            {5: {"epochs": 12}, 1: {"epochs": 10}},
            {
                "trace": {**TRAINED_ONCE, TRACE_WEIGHT: 0.003},
                "gem": {EM_STEPS: 3},
                "mbem": {EM_STEPS: 2},
            },
        ),
    },
    # 54,000 images: 93 epochs are 100,440 steps of 50, as in the paper, and 20,088 of 250.
    "mnist-sensitivity": {
        "paper": Recipe(
            {"protocol": "paper", "backbone": "cnn", "epochs": 93, "validation": 0.0},
            by_method={"gem": {"smoothing": 0.0}, "mbem": {"smoothing": 0.0}},
        ),
        "fast": Recipe(
            {
                "backbone": "cnn",
                "epochs": 93,
                "batch_size": 250,
                "validation": 0.0,
                "confusion_lr": 5.0,
            },
            by_method={"trace": {**TRAINED_ONCE, "mend": False}},
        ),
    },
    "cifar10": {
        "paper": Recipe(
            {**_PAPER, "backbone": "resnet50", "schedule": "step"},
            by_method={
                "gem": {EM_STEPS: 2, "smoothing": 0.0},
                "mbem": {EM_STEPS: 2, "smoothing": 0.0},
                "vanilla": {"weight_decay": 1e-4},
                "crossfit": {"epochs": None},
            },
        ),
        "fast": Recipe(
            {
                "backbone": "resnet9",
                "batch_size": 250,
                "lr": 1e-3,
                "schedule": "cosine",
                "weight_decay": 2e-3,
                "precision": "bf16",
                "confusion_lr": 10.0,
            },
            {4: {"epochs": 20}, 1: {"epochs": 12}},
            # Cross-fitted EM trains one network per fold and iteration for that many epochs, and
            # twice as many in the first iteration.
            {
                "trace": TRAINED_ONCE,
                "gem": {EM_STEPS: 2},
                "mbem": {EM_STEPS: 2},
                "crossfit": {"folds": 3, "rounds": 2, "restarts": 1, "mixup": 0.0, "epochs": 6},
            },
        ),
    },
    "cardiac": {
        "paper": Recipe({**_PAPER, "backbone": "cnn-wide"}, by_method=_PAPER_METHODS),
        "fast": Recipe(
            {
                **_WARM_BF16,
                "backbone": "cnn-wide",
                "batch_size": 100,
                "epochs": 20,
                "lr": 1e-3,
                "confusion_lr": 5.0,
            },
            by_method={"trace": TRAINED_ONCE, "mbem": {EM_STEPS: 2}},
        ),
    },
}
"""By experiment, or group of experiments, and protocol."""

NOT_SETTABLE = {
    "random_state": "give --seeds, the number of draws",
    "device": "give --device",
    "protocol": "give --protocol",
    "confusion": "the oracle gets the true matrices of its annotators",
    "callbacks": "the runner has its own",
    "verbose": "the runner shows progress by run",
    "checkpoint": "the runner resumes after the last finished run",
    "warm_start": "every run starts from new weights",
}
"""Settings that `--set` refuses, and why."""


def parameter_names(method: str) -> set[str]:
    """Return the parameters of a method or variant; none for what is not trained."""
    name, _ = VARIANTS.get(method, (method, {}))
    return {each.name for each in fields(METHODS[name])} if name in METHODS else set()


def make_estimator(method: str, settings: Mapping[str, Any], **more: Any) -> CrowdEstimator:
    """Return an unfitted estimator for the settings of a run."""
    name, _ = VARIANTS.get(method, (method, {}))
    return estimator_class(name)(**settings, **more)


def effective(model: CrowdEstimator, name: str) -> Any:
    """Return the value that `fit` uses for a parameter: its own, or that of its protocol."""
    value = getattr(model, name)
    if value is not None:
        return value
    # Cross-fitted EM finds its epochs itself, and the paper's protocol does not reach its networks.
    if isinstance(model, CrossFittedEM) and (name == "epochs" or model.protocol == "paper"):
        return None
    protocol = PROTOCOLS[model.protocol]
    usual = {each.name: each.default for each in fields(Settings) if each.default is not MISSING}
    return {**usual, **protocol.training, **vars(protocol)}.get(name)


def device_settings(settings: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return the settings as a device uses them: on a CPU half precision is slower.

    The key of a run depends on the planned settings, not on where it is run.
    """
    on_cpu = {"precision": FLOAT32} if device.type == "cpu" and "precision" in settings else {}
    return {**settings, **on_cpu}


def check_precision(options: Options, device: torch.device) -> None:
    """Raise an `InputError` if a CPU is asked for another precision than float32."""
    asked = dict(options.set).get("precision", FLOAT32)
    if device.type == "cpu" and asked != FLOAT32:
        raise InputError(
            f"--set precision={asked}: runs on a CPU use {FLOAT32}; leave the setting out, or give "
            "--device a GPU."
        )


def selection(model: CrowdEstimator) -> str:
    """Return the criterion that chose the epoch."""
    return model.select if model.validation else "last epoch"


def fixed_settings(method: str, options: Options) -> dict[str, Any]:
    """Return the settings of a method that `--set` and `--select` do not change."""
    _, settings = VARIANTS.get(method, (method, {}))
    if method in ("auto", "crossfit"):
        return {**settings, "select": "likelihood"}
    if method == "vanilla" and options.vanilla_decay is not None:
        return {**settings, "weight_decay": options.vanilla_decay}
    return dict(settings)


def run_settings(
    recipe: Recipe, method: str, density: int, varied: Mapping[str, Any], options: Options
) -> dict[str, Any]:
    """Return the settings of one run.

    A setting that was asked for and equals the value in use is left out, so that asking for a
    default is asking for the same run. EM has at most as many steps as epochs.

    Parameters
    ----------
    recipe : Recipe
    method : str
    density : int
        Labels per item.
    varied : mapping
        Settings that the experiment itself varies.
    options : Options
    """
    name, _ = VARIANTS.get(method, (method, {}))
    known = parameter_names(method)
    groups = (recipe.common, recipe.by_density.get(density, {}), recipe.by_method.get(name, {}))
    usual = {key: value for group in groups for key, value in group.items() if key in known}
    asked = dict(options.set) | ({"select": options.select} if options.select else {})
    wanted = {**asked, **fixed_settings(method, options)}
    changed = {key: value for key, value in wanted.items() if key in known}
    plain, model = make_estimator(method, usual), make_estimator(method, usual | changed)
    check_parameters(model)
    in_use = {key: effective(model, key) for key in changed}
    settings = usual | {k: changed[k] for k, v in in_use.items() if v != effective(plain, k)}
    return _limit_em_steps(method, settings | dict(varied), asked)


def _limit_em_steps(
    method: str, settings: dict[str, Any], asked: Mapping[str, Any]
) -> dict[str, Any]:
    model = make_estimator(method, settings)
    steps = getattr(model, EM_STEPS, 0)
    if steps and steps > (epochs := effective(model, "epochs")):
        if steps == asked.get(EM_STEPS):
            raise InputError(f"--set {EM_STEPS}={steps}: {method} has {epochs} epochs to share.")
        return {**settings, EM_STEPS: epochs}
    return settings


def open_values(name: str, asked: Any, runs: Iterable[Mapping[str, Any]], options: Options) -> Any:
    """Return the values of a setting in the runs of the methods that leave it to the user."""
    return [
        run["settings"].get(name, asked)
        for run in runs
        if name in parameter_names(run["method"])
        and name not in fixed_settings(run["method"], options)
        # Without held-out items the last epoch is kept, and there is nothing to select.
        and not (name == "select" and run["settings"].get("validation") == 0)
    ]
