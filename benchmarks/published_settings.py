"""Methods of other papers in the settings of their papers, on LabelMe.

usage: python benchmarks/published_settings.py [--data DIR] [--seeds 5]
                                               [--out results/published_settings.jsonl]

1,000 images (512 VGG features), 59 annotators, 2.5 labels per image; test part of 1,188. The
network is that of Rodrigues and Pereira (2018): 128 rectified features with dropout of .5. The
papers use ten augmented versions of each image and 8,192 features, so that their epochs have ten
times the steps. Three settings for each method:

    published   the paper's rate, batch size and epochs, all weights at one rate
    held-out    the same; a tenth of the items held out, whose labels choose the epoch
    fast        the same, and the annotators' weights at 30 x the network's rate

Appends one JSON line per run and skips runs that are there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from small_data import Crowd, labelme
from torch import nn

import annotrace as at

RODRIGUES = {"epochs": 50, "batch_size": 64, "lr": 1e-3, "validation_fraction": 0.0}
# Its code keeps the epoch at which the labels of a held-out tenth are most likely.
CHU = {"epochs": 100, "batch_size": 1024, "lr": 1e-2, "validation_fraction": 0.1}
HELD_OUT = {"validation_fraction": 0.1}
FAST = {"validation_fraction": 0.1, "confusion_lr": 30.0}

METHODS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "crowd-layer": ("crowd-layer", {}, RODRIGUES),
    "union-net A": ("union-net", {"variant": "A"}, RODRIGUES),
    "union-net B": ("union-net", {"variant": "B"}, RODRIGUES),
    "conal": ("conal", {}, CHU),
    "conal (training of crowd-layer)": ("conal", {}, RODRIGUES),
    "geo-crowd-layer F": ("geo-crowd-layer", {"volume": "F", "confusion_lr": 1.0}, RODRIGUES),
    "geo-crowd-layer W": ("geo-crowd-layer", {"volume": "W", "confusion_lr": 1.0}, RODRIGUES),
}
SETTINGS: dict[str, dict[str, Any]] = {"published": {}, "held-out": HELD_OUT, "fast": FAST}


def network(crowd: Crowd, seed: int) -> nn.Module:
    """Return the network of Rodrigues and Pereira, with initial weights by seed."""
    torch.manual_seed(seed)
    n_features, n_classes = crowd.X.shape[1], crowd.table.n_classes
    return nn.Sequential(
        nn.Linear(n_features, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, n_classes)
    )


def run(method: str, setting: str, crowd: Crowd, seed: int) -> dict[str, float]:
    name, params, training = METHODS[method]
    params = {**params, **training, **SETTINGS[setting]}
    model = at.make(name, backbone=network(crowd, seed), random_state=seed, **params)
    model.fit(crowd.X, crowd.table)
    return {
        "accuracy": float(model.score(crowd.X_test, crowd.y_test)),
        "posterior_accuracy": float(np.mean(model.result_.estimate == crowd.y)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/published_settings.jsonl"))
    args = parser.parse_args()
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    keys = ("method", "setting", "seed")
    done = {tuple(json.loads(line)[key] for key in keys) for line in lines}
    for seed, crowd in labelme(args.data, args.seeds):
        for method in METHODS:
            for setting in SETTINGS:
                cell = (method, setting, seed)
                if cell in done:
                    continue
                outcome = run(method, setting, crowd, seed)
                line = json.dumps(dict(zip(keys, cell, strict=True)) | outcome)
                print(line)
                with args.out.open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
