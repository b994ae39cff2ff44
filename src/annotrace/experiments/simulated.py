"""One run: simulated annotators label the items, a method learns from them, the truth scores it."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from annotrace.data import LabelledSet
from annotrace.diagnosis import confusion_error, dominant_draws, is_diagonally_dominant, skills
from annotrace.errors import InputError
from annotrace.experiments.plans import Run, Split
from annotrace.experiments.results import Result
from annotrace.experiments.settings import device_settings, effective, make_estimator, selection
from annotrace.labels import LabelTable
from annotrace.methods import CrowdEstimator
from annotrace.simulate import (
    cifar10_annotators,
    hammer_spammers,
    pairwise_flippers,
    simulate_labels,
)
from annotrace.training import held_out_loss
from annotrace.version import versions

FLIPPERS, SPAMMERS, CIFAR10 = "pairwise-flippers", "hammer-spammers", "cifar10"
N_ANNOTATORS, N_CLASSES = 5, 10
"""Size of a group of flippers or spammers."""

MAX_SEEDS = 1000
"""Seeds to try for a skill: of pairwise flippers at .25, one group in a million qualifies."""

CURVE_FRACTION = 0.1
"""The fraction of the items that a curve is measured on; they are not trained on."""


def true_confusion(crowd: str, skill: float | None, seed: int) -> NDArray[np.float64]:
    """Return the matrices of a group of annotators, (n_annotators, n_classes, n_classes)."""
    if crowd == CIFAR10:
        return cifar10_annotators()
    draw = {FLIPPERS: pairwise_flippers, SPAMMERS: hammer_spammers}[crowd]
    return draw(N_ANNOTATORS, N_CLASSES, skill or 0.0, seed)


@cache
def qualifying_seeds(crowd: str, skill: float, n_draws: int) -> tuple[int, ...]:
    """Return the first seeds whose group has a diagonally dominant mean matrix.

    If none does, return the first seeds of all: the experiments show what happens then.

    Raises
    ------
    InputError
        If some do, but fewer than `n_draws`.
    """
    draws = dominant_draws(partial(true_confusion, crowd, skill), n_draws, tries=MAX_SEEDS)
    if not draws:
        return tuple(range(n_draws))
    if (found := len(draws)) < n_draws:
        raise InputError(
            f"{crowd} at {skill:g}: {found} of the first {MAX_SEEDS:,} groups have a diagonally "
            f"dominant mean matrix, but {n_draws} are needed; give --seeds {found} or fewer."
        )
    return tuple(seed for seed, _ in draws)


def perform(
    run: Run, data: Split, device: torch.device, confusion: NDArray[np.float64] | None = None
) -> Result:
    """Train and score; return a line of results.jsonl.

    `confusion`, shape (n_annotators, n_classes, n_classes), has the true matrices if `run["crowd"]`
    is not a group that this module knows.
    """
    run = {**run, "settings": device_settings(run["settings"], device)}
    train, test = data
    if confusion is None:
        confusion = true_confusion(run["crowd"], run["skill"], run["seed"])
    curve: list[float] = []
    known: dict[str, Any] = {"confusion": confusion} if run["method"] == "oracle" else {}
    known |= {"random_state": run["seed"], "device": str(device)}
    model = make_estimator(run["method"], run["settings"], **known)
    if "curve" in run["keep"]:
        train, held_out = train.split(round(len(train.y) * (1 - CURVE_FRACTION)), run["seed"])
        model.set_params(callbacks=(lambda _: curve.append(_accuracy(model.network_, held_out)),))
    table = simulate_labels(
        train.y, confusion, labels_per_item=run["density"], random_state=run["seed"]
    )
    started = time.perf_counter()
    model.fit(train.X, table)
    result = {
        **describe(run, confusion, table),
        "seconds": round(time.perf_counter() - started, 3),
        **score(model, (train, test), confusion, run),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }
    if curve:
        steps = -(-len(train.y) // effective(model, "batch_size"))
        result["curve"] = [[steps * (k + 1), accuracy] for k, accuracy in enumerate(curve)]
    return result


def describe(run: Run, confusion: NDArray[np.float64], table: LabelTable) -> Result:
    """Return what was run, and what the annotators and their labels are like."""
    correct = table.label == np.asarray(table.truth)[table.item]
    return {
        **{name: value for name, value in run.items() if name != "keep"},
        "n_items": table.n_items,
        "n_classes": table.n_classes,
        "annotator_accuracy": round(float(correct.mean()), 5),
        "dominant": is_diagonally_dominant(confusion),
        "true_skills": rounded(skills(confusion)),
        "versions": versions(),
    }


def score(model: CrowdEstimator, data: Split, confusion: NDArray[np.float64], run: Run) -> Result:
    """Compare a fitted model with the truth."""
    train, test = data
    predicted = model.predict_proba(test.X)
    rng = np.random.default_rng([run["seed"], 1])
    fresh = simulate_labels(test.y, confusion, labels_per_item=run["density"], random_state=rng)
    # Cross-fitting leaves no score in its last epoch: no single epoch was selected.
    selected = model.history_[-1].held_out is not None
    scores: Result = {
        "accuracy": round(float((predicted.argmax(1) == test.y).mean()), 5),
        "posterior_accuracy": round(float((model.posterior_.argmax(1) == train.y).mean()), 5),
        "cm_error": None,
        "label_nll": round(label_nll(model, predicted, fresh), 5),
        "held_out": round(held_out_loss(model.history_), 5) if selected else None,
        "selection": selection(model),
    }
    if hasattr(model, "confusion_"):
        scores["cm_error"] = round(confusion_error(model.confusion_, confusion), 7)
        scores["skills"] = rounded(skills(model.confusion_))
        scores["mean_confusion"] = rounded(model.confusion_.mean(axis=0))
        if "confusion" in run["keep"]:
            scores["confusion"] = rounded(model.confusion_)
    return scores


def label_nll(model: CrowdEstimator, predicted: NDArray[Any], table: LabelTable) -> float:
    """Return the mean negative log-likelihood of labels of new items.

    The likelihood of a label is that of the predicted classes, shape (n_items, n_classes), through
    the annotator's matrix, if the method has one.
    """
    rows = predicted[table.item]
    if hasattr(model, "confusion_"):
        likelihood = (rows * model.confusion_[table.annotator, :, table.label]).sum(axis=1)
    elif hasattr(model, "vote_confusion_"):
        likelihood = (rows * model.vote_confusion_[:, table.label].T).sum(axis=1)
    else:
        likelihood = rows[np.arange(len(rows)), table.label]
    # A matrix counted without smoothing has zeros, and one such label would be an infinite loss.
    return float(-np.log(likelihood.clip(1e-12)).mean())


def rounded(values: NDArray[Any]) -> Any:
    """Return an array as lists of numbers with four decimals."""
    return np.round(values, 4).tolist()


@torch.no_grad()
def _accuracy(network: nn.Module, items: LabelledSet) -> float:
    """Return the accuracy of a network between two epochs."""
    network.eval()
    device = next(network.parameters()).device
    parts = torch.from_numpy(items.X).split(1024)
    predicted = torch.cat([network(part.to(device)).argmax(1).cpu() for part in parts])
    return round(float((predicted.numpy() == items.y).mean()), 5)
