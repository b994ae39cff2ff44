"""Images with and without augmentation.

usage: python benchmarks/augmentation.py --data DIR [--cifar DIR] [--only cifar10n,...]
                                         [--augment auto,...] [--seeds 3] [--out FILE]
                                         [--show FILE]

    cifar10-dense  CIFAR-10, the four annotators of the paper label all images
    cifar10-one    CIFAR-10, one of them labels each image
    cifar10n       CIFAR-10 with three labels per image by people (CIFAR-10N)
    mnist          MNIST, one label per image by five pairwise flippers at .5
    digits         digits as 8 x 8 images, two labels per image by hammer-spammers at .6
    labelme        1,000 photos of 64 x 64 pixels, 59 annotators, 2.5 labels per photo

DIR of --cifar has CIFAR-10 in its binary version. The settings for CIFAR-10 are those of the fast
protocol (`annotrace reproduce cifar10-table`), with more epochs and mirror images averaged in
predictions: chosen on 25,000 and 5,000 images of the training part. Nothing is chosen by the truth
of a run. Appends one JSON line per run to FILE; runs that it has are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import annotrace as at
from annotrace.diagnosis import confusion_error
from annotrace.simulate import (
    cifar10_annotators,
    hammer_spammers,
    pairwise_flippers,
    simulate_labels,
)

RESNET = {
    "backbone": "resnet9",
    "batch_size": 250,
    "lr": 1e-3,
    "schedule": "cosine",
    "weight_decay": 2e-3,
    "precision": "bf16",
    "average_flips": True,
}
ONE_NETWORK = {"structure": "full", "confusion_lr": 10.0}
PLAIN_RECIPE = {"n_init": 1, "mixup": 0.0, "calibrate": False}
ONE_LABEL = {"lr": 2e-3, "schedule": "warm-cosine", "weight_decay": 1e-3}
FOLDS = {"n_folds": 5, "n_iter": 2, "init": "trace", "mixup": 0.0, "epochs": 12}


class Crowd(NamedTuple):
    """Images with labels and truth, and test images."""

    X: np.ndarray
    table: at.LabelTable
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    confusion: np.ndarray | None = None


class Task(NamedTuple):
    """A set, and the methods that learn from it with their settings."""

    load: Callable[[argparse.Namespace, int], Crowd]
    methods: dict[str, dict[str, Any]]
    augment: tuple[str, ...] = ("none", "crop+flip")


@cache
def _cifar10(folder: Path) -> tuple[np.ndarray, ...]:
    train, test = at.data.load_cifar10(folder)
    return train.X, train.y, test.X, test.y


def cifar10(labels_per_item: int, options: argparse.Namespace, seed: int) -> Crowd:
    X, y, X_test, y_test = _cifar10(options.cifar)
    return simulated(X, y, X_test, y_test, cifar10_annotators(), labels_per_item, seed)


def cifar10n(options: argparse.Namespace, seed: int) -> Crowd:
    X, y, X_test, y_test = _cifar10(options.cifar)
    columns = np.load(options.data / "crowd" / "cifar10n.npz")["R"][: len(y)]
    return Crowd(X, at.LabelTable.from_wide(columns.astype(np.int64)), y, X_test, y_test)


def mnist(options: argparse.Namespace, seed: int) -> Crowd:
    train, test = at.data.load_mnist(options.data / "mnist")
    confusion = pairwise_flippers(5, 10, 0.5, random_state=seed)
    return simulated(train.X, train.y, test.X, test.y, confusion, 1, seed)


def digits(options: argparse.Namespace, seed: int) -> Crowd:
    train, test = at.data.load_digits().split(1400)
    X, X_test = (part.X.reshape(-1, 8, 8) for part in (train, test))
    confusion = hammer_spammers(5, 10, 0.6, random_state=seed)
    return simulated(X, train.y, X_test, test.y, confusion, 2, seed)


def labelme(options: argparse.Namespace, seed: int) -> Crowd:
    z = np.load(options.data / "crowd" / "labelme.npz")
    photos = np.load(options.data / "crowd" / "labelme_images64.npz")
    table = at.LabelTable.from_wide(z["A"])
    X, X_test = (_undo_differences(photos[name]) for name in ("d64_train", "d64_test"))
    return Crowd(X, table, z["y_train"], X_test, z["y_test"])


def _undo_differences(stored: np.ndarray) -> np.ndarray:
    """Return stored images, (3, n, height, width), as uint8 of shape (n, height, width, 3)."""
    planes = stored.cumsum(0, dtype="u1").cumsum(2, dtype="u1").cumsum(3, dtype="u1")
    return planes.transpose(1, 2, 3, 0)


def simulated(
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray,
    y_test: np.ndarray,
    confusion: np.ndarray,
    labels_per_item: int,
    seed: int,
) -> Crowd:
    table = simulate_labels(y, confusion, labels_per_item=labels_per_item, random_state=seed)
    return Crowd(X, table, y, X_test, y_test, confusion)


TASKS = {
    "cifar10-dense": Task(partial(cifar10, 4), {"trace": RESNET | ONE_NETWORK | {"epochs": 36}}),
    "cifar10-one": Task(
        partial(cifar10, 1), {"trace": RESNET | ONE_LABEL | ONE_NETWORK | {"epochs": 36}}
    ),
    "cifar10n": Task(
        cifar10n,
        {
            "auto": RESNET | FOLDS,
            "two-stage": RESNET | {"epochs": 30},
            "vanilla": RESNET | {"epochs": 30},
        },
    ),
    "mnist": Task(
        mnist,
        {"trace": {"backbone": "cnn", "batch_size": 200, "epochs": 12}},
        ("auto", "none", "crop", "crop+flip"),
    ),
    "digits": Task(digits, {"trace": {}}, ("auto", "none", "crop", "crop+flip")),
    "labelme": Task(labelme, {"auto": {}, "trace": {}}, ("auto", "none", "crop", "crop+flip")),
}


def run(crowd: Crowd, method: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    params = dict(settings)
    if method == "trace" and params.get("structure"):
        params["recipe"] = at.methods.Recipe(**PLAIN_RECIPE)
    model = at.make(method, random_state=seed, **params)
    started = time.perf_counter()
    model.fit(crowd.X, crowd.table)
    found: dict[str, Any] = {"seconds": round(time.perf_counter() - started, 1)}
    found["accuracy"] = float(np.mean(model.predict(crowd.X_test) == crowd.y_test))
    found["posterior_accuracy"] = float(np.mean(model.posterior_.argmax(1) == crowd.y))
    if crowd.confusion is not None and hasattr(model, "confusion_"):
        found["cm_error"] = confusion_error(model.confusion_, crowd.confusion)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return found | {"chosen": model.augment_, "device": device, "torch": torch.__version__}


def show(lines: list[dict[str, Any]]) -> None:
    print("| set | method | augment | chosen | accuracy | lowest | posterior | seconds |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    for key in dict.fromkeys(_key(line)[:3] for line in lines):
        own = [line for line in lines if _key(line)[:3] == key]
        accuracy, posterior, seconds = (
            [line[name] for line in own] for name in ("accuracy", "posterior_accuracy", "seconds")
        )
        chosen = ", ".join(sorted({line["chosen"] for line in own}))
        means = f"{np.mean(accuracy):.4f} | {min(accuracy):.4f} | {np.mean(posterior):.4f}"
        print(f"| {' | '.join(key)} | {chosen} | {means} | {np.mean(seconds):.1f} |")


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["set"], line["method"], line["augment"], line["seed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--only", default=",".join(TASKS))
    parser.add_argument("--augment", help="those to try, if not all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/augmentation.jsonl"))
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    path = options.show or options.out
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {_key(line) for line in lines}
    for name in () if options.show else options.only.split(","):
        task = TASKS[name]
        augment = options.augment.split(",") if options.augment else task.augment
        for seed in range(options.seeds):
            crowd = None
            for method, settings in task.methods.items():
                for kind in augment:
                    key = {"set": name, "method": method, "augment": kind, "seed": seed}
                    if _key(key) in done:
                        continue
                    crowd = task.load(options, seed) if crowd is None else crowd
                    line = key | run(crowd, method, settings | {"augment": kind}, seed)
                    lines.append(line | {"settings": settings})
                    print(json.dumps(line), flush=True)
                    with options.out.open("a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    show(lines)


if __name__ == "__main__":
    main()
