"""Tables about texts and images, of `benchmarks/texts.py` and `augmentation.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotrace.experiments import tables

Run = dict[str, Any]

TEXTS = {
    "sentiment": "sentences",
    "reviews": "reviews",
    "rte": "premise and hypothesis",
    "products": "product records",
}
IMAGES = {
    "cifar10-dense": "CIFAR-10, four labels",
    "cifar10-one": "CIFAR-10, one label",
    "cifar10n": "CIFAR-10N",
    "mnist": "MNIST",
    "digits": "digits",
    "labelme": "LabelMe",
}
WITH_TEXT = ("auto", "vanilla")
ALONE = ("default", "hierarchical", "majority")


def texts_table(runs: Sequence[Run]) -> str:
    """Return accuracies with texts, by n-grams on one core, beside those without."""
    own = [run for run in runs if run["threads"] == 1 and run["encoder"] == ""]
    headers = ["texts", "new texts: `auto`", "`vanilla`", "labelled texts: `auto`"]
    rows = [[title, *_text_cells(own, name)] for name, title in TEXTS.items()]
    return tables.markdown([*headers, *(f"`{name}`" for name in ALONE)], rows)


def _text_cells(runs: Sequence[Run], name: str) -> list[str]:
    new = [_cell(runs, "test_accuracy", experiment=name, method=m) for m in WITH_TEXT]
    labelled = ("auto", *ALONE)
    known = [
        _cell(runs, "posterior_accuracy", experiment=name, method=m) for m in labelled
    ]
    return new + known


def augmentation_table(runs: Sequence[Run]) -> str:
    """Return the accuracy on new images by augmentation, and what "auto" has chosen."""
    kinds = ("none", "crop", "crop+flip", "auto")
    rows = []
    for name, title in IMAGES.items():
        for method in dict.fromkeys(
            run["method"] for run in runs if run["set"] == name
        ):
            own = [run for run in runs if (run["set"], run["method"]) == (name, method)]
            cells = [_cell(own, "accuracy", augment=kind) for kind in kinds]
            seeds = str(len({run["seed"] for run in own}))
            rows.append([title, f"`{method}`", seeds, *cells, _chosen(own)])
    headers = ["images", "method", "seeds", *(f'"{kind}"' for kind in kinds), "chosen"]
    return tables.markdown(headers, rows, left=2)


def _chosen(runs: Sequence[Run]) -> str:
    chosen = [run["chosen"] for run in runs if run["augment"] == "auto"]
    counts = {kind: chosen.count(kind) for kind in dict.fromkeys(chosen)}
    return ", ".join(f"{kind} ({n})" for kind, n in counts.items())


def _cell(runs: Sequence[Run], measure: str, **wanted: Any) -> str:
    own = [run for run in runs if wanted.items() <= run.items()]
    values = [run[measure] for run in own if measure in run]
    return f"{np.mean(values):.3f}".removeprefix("0") if values else ""
