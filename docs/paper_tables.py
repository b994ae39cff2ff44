"""Tables of the experiments of the paper, its numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from result_rows import Run, cell, markdown, mean, only, read_runs, with_lowest

from annotrace.experiments import cardiac, cifar10, digits, tables


def paper_table(
    density: int,
    name: str = "cifar10_table",
    methods: tuple[str, ...] = cifar10.METHODS,
) -> str:
    """Return one half of the paper's table 1, its numbers beside ours."""
    runs, theirs = read_runs(name), cifar10.PUBLISHED[density]
    return tables.beside_published(runs, methods, density, theirs, unit=10)


def resnet50_settings_table() -> str:
    """Return the settings tried with ResNet-50, one label per image, by accuracy."""
    shown = {
        "weight_decay": "L2",
        "lr": "rate",
        "schedule": "schedule",
        "epochs": "epochs",
    }
    kept = only(read_runs("cifar10_resnet50"), density=1, seed=0)
    runs = [*kept, *read_runs("cifar10_resnet50_settings")]
    rows = [
        [
            *(str(run["settings"][name]) for name in shown),
            f"{100 * run['accuracy']:.2f}",
            f"{100 * run['cm_error']:.2f}",
            f"{run['seconds']:.0f}",
        ]
        for run in sorted(runs, key=lambda run: -run["accuracy"])
    ]
    headers = [*shown.values(), "accuracy", "CM error", "seconds"]
    return tables.markdown(headers, rows, left=0)


def mnist_table() -> str:
    """Return accuracy and CM error of the trace on MNIST, one row per skill."""
    runs = only(read_runs("mnist"), method="trace")
    groups = dict.fromkeys((run["crowd"], run["density"]) for run in runs)
    rows = [
        [f"{skill:g}", *(_mnist_cell(runs, skill, *group) for group in groups)]
        for skill in sorted({run["skill"] for run in runs})
    ]
    names = [f"{crowd}, {'one label' if n == 1 else 'dense'}" for crowd, n in groups]
    return tables.markdown(["p", *names], rows)


def _mnist_cell(runs: Sequence[Run], skill: float, crowd: str, density: int) -> str:
    own = only(runs, skill=skill, crowd=crowd, density=density)
    accuracy = [100 * run["accuracy"] for run in own]
    lowest = f" ({min(accuracy):.2f})" if len(own) > 1 else ""
    return f"{np.mean(accuracy):.2f}{lowest}, {100 * mean(own, 'cm_error'):.2f}"


def cardiac_table() -> str:
    """Return the table of figure 7, the paper's numbers beside ours."""
    runs, labels = read_runs("cardiac"), cardiac.LABELS_PER_IMAGE
    return tables.beside_published(runs, cardiac.METHODS, labels, cardiac.PUBLISHED)


def all_methods_table(density: int) -> str:
    """Return the table of `annotrace reproduce digits` for one density."""
    return tables.by_method(read_runs("reproduce_digits"), digits.METHODS, density)


def digits_runs_table(density: int) -> str:
    """Return all measures of `benchmarks/digits.py` for one density."""
    runs = only(read_runs("digits"), density=density)
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        own = only(runs, method=method)
        error = mean(own, "cm_error")
        rows.append(
            [
                f"`{method}`",
                with_lowest(own, "accuracy"),
                cell(mean(own, "posterior_accuracy"), bold=False),
                "" if error is None else f"{100 * error:.1f}",
                f"{mean(own, 'seconds'):.1f}",
            ]
        )
    headers = ["method", "accuracy", "posterior", "CM error x 100", "seconds"]
    return tables.markdown(headers, rows)


def digits_table(figure: str) -> str:
    """Return one measure of `benchmarks/digits.py` for one and five labels per item."""
    runs = read_runs("digits")
    methods = list(dict.fromkeys(run["method"] for run in runs))
    rows = [
        [mean(only(runs, method=method, density=density), figure) for density in (1, 5)]
        for method in methods
    ]
    return markdown(
        ["method", "one label, skill .35", "five labels, skill .5"], methods, rows
    )
