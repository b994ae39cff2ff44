"""One run: a crowd labels the items, a method learns from the labels, and the truth judges it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.diagnosis import confusion_error, is_diagonally_dominant, skills
from annotrace.experiments.crowds import confusion_of
from annotrace.experiments.runs import Result, Run, Split, find_method
from annotrace.labels import LabelTable
from annotrace.methods import CrowdEstimator
from annotrace.simulate import simulate_labels
from annotrace.training import Epoch, held_out_loss
from annotrace.version import versions

FLOAT32 = "float32"
"""The precision of every run on a CPU."""

WATCHED = 0.1
"""The part of the items that a curve is measured on; nothing is learned from them."""


def perform(run: Run, data: Split, device: torch.device) -> Result:
    """Train and judge.

    Parameters
    ----------
    run : Run
    data : (LabelledSet, LabelledSet)
        What is learned from, and what is tested on.
    device : torch.device

    Returns
    -------
    dict
        A line of results.jsonl.
    """
    train, test = data
    if "curve" in run.keep:
        train, watched = train.split(round(len(train.y) * (1 - WATCHED)), run.seed)
    crowd = confusion_of(run)
    table = simulate_labels(train.y, crowd, labels_per_item=run.density, random_state=run.seed)
    settings = _settings(run, device)
    model = _make(run, settings, crowd, device)
    curve: list[float] = []
    if "curve" in run.keep:
        model.set_params(callbacks=(_watch(model, watched.X, watched.y, curve),))
    started = time.perf_counter()
    model.fit(train.X, table)
    seconds = time.perf_counter() - started
    result = {
        **describe(run, crowd, table),
        **judge(model, (train, test), crowd, run),
        "settings": settings,
        "seconds": round(seconds, 3),
        "selection": model.select if model.validation else "last epoch",
        "device": _device_name(device),
        "versions": versions(),
    }
    if "confusion" in run.keep and hasattr(model, "confusion_"):
        result["confusion"] = rounded(model.confusion_)
    if curve:
        steps = -(-len(train.y) // model._settings(run.seed).batch_size)
        result["curve"] = [[steps * (k + 1), accuracy] for k, accuracy in enumerate(curve)]
    return result


def describe(run: Run, crowd: NDArray[Any], table: LabelTable) -> Result:
    """Tell what was run, and what the crowd is like."""
    right = table.label == np.asarray(table.truth)[table.item]
    return {
        "key": run.key,
        "experiment": run.experiment,
        "data": run.data,
        "method": run.method,
        "crowd": run.crowd,
        "skill": run.skill,
        "density": run.density,
        "seed": run.seed,
        "protocol": run.protocol,
        "settings": dict(run.settings),
        "n_items": table.n_items,
        "n_classes": table.n_classes,
        "annotator_accuracy": round(float(right.mean()), 5),
        "dominant": is_diagonally_dominant(crowd),
        "true_skills": rounded(skills(crowd)),
    }


def judge(model: CrowdEstimator, data: Split, crowd: NDArray[Any], run: Run) -> Result:
    """Compare what was learned with the truth."""
    train, test = data
    predicted = model.predict_proba(test.X)
    rng = np.random.default_rng([run.seed, 1])
    fresh = simulate_labels(test.y, crowd, labels_per_item=run.density, random_state=rng)
    # Where the last epoch has none, as of cross-fitting, what was kept was not chosen by one.
    chosen = model.history_[-1].held_out is not None
    judged: Result = {
        "accuracy": round(float((predicted.argmax(1) == test.y).mean()), 5),
        "posterior_accuracy": round(float((model.posterior_.argmax(1) == train.y).mean()), 5),
        "cm_error": None,
        "label_nll": round(label_nll(model, predicted, fresh), 5),
        "held_out": round(held_out_loss(model.history_), 5) if chosen else None,
    }
    if hasattr(model, "confusion_"):
        judged["cm_error"] = round(confusion_error(model.confusion_, crowd), 7)
        judged["skills"] = rounded(skills(model.confusion_))
        judged["mean_confusion"] = rounded(model.confusion_.mean(axis=0))
    return judged


def label_nll(model: CrowdEstimator, predicted: NDArray[Any], table: LabelTable) -> float:
    """Give the mean negative log-likelihood of labels of new items.

    Annotators say what the classifier says, through their matrices where the method has them.

    Parameters
    ----------
    model : CrowdEstimator
        Fitted.
    predicted : ndarray of shape (n_items, n_classes)
    table : LabelTable
        Of the new items, by the annotators of the training.
    """
    rows = predicted[table.item]
    if hasattr(model, "confusion_"):
        columns = model.confusion_[table.annotator, :, table.label]
        said = (rows * columns).sum(axis=1)
    elif hasattr(model, "vote_confusion_"):
        said = (rows * model.vote_confusion_[:, table.label].T).sum(axis=1)
    else:
        said = rows[np.arange(len(rows)), table.label]
    # A matrix counted without smoothing has zeros, and one such label would be an infinite loss.
    return float(-np.log(said.clip(1e-12)).mean())


def rounded(values: NDArray[Any]) -> Any:
    """Give an array as lists of numbers with four places."""
    return np.round(values, 4).tolist()


def _settings(run: Run, device: torch.device) -> dict[str, Any]:
    """Give the settings of a run as this device has them.

    Half precision is slower on a CPU. A plan, and so the key of a run, does not depend on where it
    is run or drawn.
    """
    settings = dict(run.settings)
    if device.type == "cpu" and "precision" in settings:
        settings["precision"] = FLOAT32
    return settings


def _make(
    run: Run, settings: dict[str, Any], crowd: NDArray[Any], device: torch.device
) -> CrowdEstimator:
    estimator, _ = find_method(run.method)
    known: dict[str, Any] = {"confusion": crowd} if run.method == "oracle" else {}
    return estimator(**settings, **known, random_state=run.seed, device=str(device))


def _watch(
    model: CrowdEstimator, X: NDArray[Any], y: NDArray[Any], curve: list[float]
) -> Callable[[Epoch], None]:
    def note(_: Epoch) -> None:
        curve.append(round(float((model.predict_proba(X).argmax(1) == y).mean()), 5))

    return note


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
