"""The tables of the docs, each made from a file of `results/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dependence_tables
import item_tables
import loop_table
import numpy as np
import paper_runs_table
import published_table
import regional_table
import speed_tables
import variant_tables
import zoo_tables

from annotrace.experiments import cardiac, cifar10, digits, tables

RESULTS = Path(__file__).parent.parent / "results"
Run = dict[str, Any]

CROWDS = {
    "labelme": "LabelMe",
    "sentiment": "sentiment",
    "cifar10n": "CIFAR-10N",
    "flippers": "flippers",
    "hammers": "hammers",
}
JOINT = ("auto", "trace", "trace@paper", "two-stage", "vanilla", "oracle")
# Never in bold: in practice the true matrices are unknown.
ORACLE = "oracle"
LABELS_ALONE = ("dawid-skene", "majority")


def read_runs(name: str) -> list[Run]:
    """Read a file of `results/`, one run per line."""
    with (RESULTS / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def mean(runs: Iterable[Run], name: str) -> float | None:
    """Return the mean of one measure over runs, None if no run has it."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return float(np.mean(values)) if values else None


def crowds_table(figure: str, methods: Sequence[str]) -> str:
    """Return one measure of `benchmarks/small_data.py` by method and crowd."""
    runs = read_runs("small_data")
    rows = [
        [mean(_only(runs, method=method, experiment=crowd), figure) for crowd in CROWDS]
        for method in methods
    ]
    return markdown(["method", *CROWDS.values()], methods, rows)


def crowd_table(crowd: str) -> str:
    """Return all measures of one crowd of `benchmarks/small_data.py` by method."""
    figures = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced",
        "posterior_accuracy": "posterior",
        "calibration_error": "calibration",
    }
    runs = _only(read_runs("small_data"), experiment=crowd)
    methods = [m for m in (*JOINT, *LABELS_ALONE) if _only(runs, method=m)]
    lines = [
        f"| method | {' | '.join(figures.values())} | seconds |",
        "|---" + "|---:" * (len(figures) + 1) + "|",
    ]
    for method in methods:
        own = _only(runs, method=method)
        cells = [_with_lowest(own, name) for name in figures]
        seconds = mean(own, "seconds")
        cells.append("" if seconds is None else f"{seconds:.1f}")
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_lowest(runs: Sequence[Run], name: str) -> str:
    """Return the mean, with the lowest value if higher is better."""
    average = mean(runs, name)
    if average is None:
        return ""
    if "accuracy" not in name:
        return _cell(average, bold=False)
    lowest = min(run[name] for run in runs)
    return f"{_cell(average, bold=False)} ({_cell(lowest, bold=False)})"


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
    kept = _only(read_runs("cifar10_resnet50"), density=1, seed=0)
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
    runs = _only(read_runs("mnist"), method="trace")
    groups = dict.fromkeys((run["crowd"], run["density"]) for run in runs)
    rows = [
        [f"{skill:g}", *(_mnist_cell(runs, skill, *group) for group in groups)]
        for skill in sorted({run["skill"] for run in runs})
    ]
    names = [f"{crowd}, {'one label' if n == 1 else 'dense'}" for crowd, n in groups]
    return tables.markdown(["p", *names], rows)


def _mnist_cell(runs: Sequence[Run], skill: float, crowd: str, density: int) -> str:
    own = _only(runs, skill=skill, crowd=crowd, density=density)
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
    runs = _only(read_runs("digits"), density=density)
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        own = _only(runs, method=method)
        error = mean(own, "cm_error")
        rows.append(
            [
                f"`{method}`",
                _with_lowest(own, "accuracy"),
                _cell(mean(own, "posterior_accuracy"), bold=False),
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
        [
            mean(_only(runs, method=method, density=density), figure)
            for density in (1, 5)
        ]
        for method in methods
    ]
    return markdown(
        ["method", "one label, skill .35", "five labels, skill .5"], methods, rows
    )


def aggregation_table() -> str:
    """Return the mean accuracy of aggregations over eleven crowds."""
    runs = _only(read_runs("aggregation_accuracy"), library="annotrace")
    methods = list(dict.fromkeys(run["method"] for run in runs))
    rows = [[mean(_only(runs, method=method), "accuracy")] for method in methods]
    return markdown(["method", "mean of eleven crowds"], methods, rows)


def recipe_table() -> str:
    """Return what the recipe gives each method, from `benchmarks/recipe.py`."""
    runs, rows = read_runs("recipe"), []
    for crowd, method in dict.fromkeys((run["set"], run["method"]) for run in runs):
        cells = []
        for recipe in ("none", "default"):
            own = _only(runs, set=crowd, method=method, recipe=recipe)
            for measure in ("accuracy", "posterior_accuracy"):
                cells.append(f"{mean(own, measure):.3f}".removeprefix("0"))
        rows.append([crowd, f"`{method}`", *cells])
    headers = ["crowd", "method", "plain", "posterior", "recipe", "posterior"]
    return tables.markdown(headers, rows, left=2)


def confidence_table() -> str:
    """Return the calibration error by correlation, from `benchmarks/confidence.py`."""
    runs = read_runs("confidence")
    correlations = [each for each in runs[0]["errors"] if each != "0.6"]
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        errors = [run["errors"] for run in _only(runs, method=method)]
        means = [
            sum(own[each] for own in errors) / len(errors) for each in correlations
        ]
        cells = [f"{value:.3f}".removeprefix("0") for value in means]
        rows.append([f"`{method}`", *cells])
    headers = ["method", *(each.removeprefix("0") or "0" for each in correlations)]
    return tables.markdown(headers, rows)


def diagnosis_table() -> str:
    """Count verdicts by kind of crowd, from `benchmarks/diagnosis.py`."""
    runs, verdicts = read_runs("diagnosis"), ("identified", "weak", "not identified")
    rows = [
        [crowd, *(str(len(_only(runs, crowd=crowd, verdict=v))) for v in verdicts)]
        for crowd in dict.fromkeys(run["crowd"] for run in runs)
    ]
    return tables.markdown(["crowd", *verdicts], rows)


def flags_table() -> str:
    """Count flagged annotators by kind of crowd, from `benchmarks/flags.py`."""
    runs, counted = read_runs("flags"), ("flagged", "of", "wrongly")
    kinds = {run["crowd"]: _only(runs, crowd=run["crowd"]) for run in runs}
    rows = [
        [kind, str(len(own)), *(str(sum(run[name] for run in own)) for name in counted)]
        for kind, own in kinds.items()
    ]
    return tables.markdown(
        ["crowds", "number", "flagged", "of", "wrongly flagged"], rows
    )


def intervals_table() -> str:
    """Average the coverage of intervals, from `benchmarks/skill_intervals.py`."""
    runs = read_runs("skill_intervals")
    kinds = {run["crowd"]: _only(runs, crowd=run["crowd"]) for run in runs}
    kinds["all"] = runs
    rows = [
        [
            kind,
            *(f"{value:.3f}".removeprefix("0") for value in _coverage(own)),
        ]
        for kind, own in kinds.items()
    ]
    few = "fewer than 30 labels"
    headers = ["crowds", "covered", few, "cells", "width", f"width, {few}"]
    return tables.markdown(headers, rows)


def _coverage(runs: Sequence[Run]) -> list[float]:
    def total(name: str) -> float:
        return float(sum(run[name] for run in runs))

    return [
        total("covered") / total("annotators"),
        total("covered_few") / total("annotators_few"),
        *(total(name) / len(runs) for name in ("cells_covered", "width", "width_few")),
    ]


GOLD = {
    "default": "default",
    "without_gold": "without gold",
    "dawid_skene": "`dawid-skene`",
    "best_judge": "best judge on gold",
    "with_text": "with text",
    "covered": "covered",
    "width": "width",
    "width_gold_alone": "width, gold alone",
}


def gold_table() -> str:
    """Return what gold items give, from `benchmarks/gold.py`."""
    rows = [
        [run["panel"], str(run["n_gold"])]
        + [f"{run[name]:.3f}".removeprefix("0") for name in GOLD]
        for run in read_runs("gold")
    ]
    return tables.markdown(["panel", "gold items", *GOLD.values()], rows)


STEPS = {
    ("cnn, MNIST, 50", "`vanilla`"): "mnist vanilla {}",
    ("cnn, MNIST, 50", "`trace`, dense"): "mnist trace {}",
    ("cnn, MNIST, 50", "`trace`, one label per item"): "mnist trace one {}",
    ("resnet9, CIFAR-10, 250, float32", "`trace`, dense"): "resnet9 trace {} float32",
    ("resnet9, CIFAR-10, 250, bf16", "`trace`, dense"): "resnet9 trace {} bf16",
    ("resnet9, CIFAR-10, 250, bf16", "`vanilla`"): "resnet9 vanilla {} bf16",
}
"""Cases of `benchmarks/fast_step.py`, with a place for "plain" or "fast"."""


def steps_table() -> str:
    """Return milliseconds per step, plain and replayed."""
    runs = _only(read_runs("fast_step"), section="speed")
    took = {run["case"]: run["ms"] for run in runs}
    rows = []
    for (network, method), case in STEPS.items():
        plain, fast = took.get(case.format("plain")), took[case.format("fast")]
        both = ["", f"{fast:.2f}", ""]
        if plain is not None:
            both = [f"{plain:.2f}", f"{fast:.2f}", f"{plain / fast:.1f} x"]
        rows.append([network, method, *both])
    headers = ["network, batch", "method", "plain", "fast", ""]
    return tables.markdown(headers, rows, left=2)


def markdown(
    headers: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[float | None]]
) -> str:
    """Return a table in Markdown, the best of each column in bold."""
    shown = [
        [None if value is None else round(value, 3) for value in row] for row in rows
    ]
    compared = [row for name, row in zip(names, shown, strict=True) if name != ORACLE]
    best = [
        max((value for value in column if value is not None), default=None)
        for column in zip(*compared, strict=True)
    ]
    lines = [f"| {' | '.join(headers)} |", "|---" + "|---:" * (len(headers) - 1) + "|"]
    for name, row in zip(names, shown, strict=True):
        cells = [
            _cell(value, value == top) for value, top in zip(row, best, strict=True)
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None, bold: bool) -> str:
    if value is None:
        return ""
    said = f"{value:.3f}".removeprefix("0")
    return f"**{said}**" if bold else said


def _only(runs: Iterable[Run], **wanted: Any) -> list[Run]:
    return [
        run for run in runs if all(run[name] == value for name, value in wanted.items())
    ]


TABLES: dict[str, Callable[[], str]] = {
    "classifier": lambda: crowds_table("accuracy", JOINT),
    "truth": lambda: crowds_table("posterior_accuracy", (*JOINT, *LABELS_ALONE)),
    "digits": lambda: digits_table("accuracy"),
    "aggregation": aggregation_table,
    "zoo-real": lambda: zoo_tables.real_table(read_runs("zoo")),
    "zoo-families": lambda: zoo_tables.families_table(read_runs("zoo")),
    "mnist-paper": lambda: paper_runs_table.paper_runs_table(read_runs("mnist_paper")),
    "variants": lambda: variant_tables.by_variant_table(read_runs("variants")),
    "variants-sets": lambda: variant_tables.by_set_table(read_runs("variants")),
    **{crowd: partial(crowd_table, crowd) for crowd in CROWDS},
    "digits-one": lambda: digits_runs_table(1),
    "digits-five": lambda: digits_runs_table(5),
    "diagnosis": diagnosis_table,
    "recipe": recipe_table,
    "published": lambda: published_table.published_table(
        read_runs("published_settings")
    ),
    "label-studio-loop": lambda: loop_table.loop_table(read_runs("label_studio_loop")),
    "item-dependent": lambda: regional_table.regional_table(
        read_runs("item_dependent")
    ),
    "confidence": confidence_table,
    "flags": flags_table,
    "intervals": intervals_table,
    "accuracy": lambda: dependence_tables.accuracy_table(
        read_runs("accuracy_intervals")
    ),
    "verdicts": lambda: dependence_tables.verdicts_table(read_runs("verdicts")),
    "texts": lambda: item_tables.texts_table(read_runs("texts")),
    "augmentation": lambda: item_tables.augmentation_table(read_runs("augmentation")),
    "gold": gold_table,
    "steps": steps_table,
    "peers": lambda: speed_tables.peers_table(read_runs("bench")),
    "cifar10-dense": lambda: paper_table(4),
    "cifar10-one": lambda: paper_table(1),
    "mnist": mnist_table,
    "cardiac": cardiac_table,
    "reproduce-digits-dense": partial(all_methods_table, 5),
    "reproduce-digits-one": partial(all_methods_table, 1),
    "resnet50-dense": lambda: paper_table(4, "cifar10_resnet50", ("trace",)),
    "resnet50-one": lambda: paper_table(1, "cifar10_resnet50", ("trace",)),
    "resnet50-settings": resnet50_settings_table,
}
