"""The tables of the docs, each made from a file of `results/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import dependence_tables
import item_tables
import loop_table
import paper_runs_table
import paper_tables
import published_table
import regional_table
import speed_tables
import trust_tables
import variant_tables
import zoo_tables
from paper_tables import paper_table
from result_rows import markdown, mean, only, read_runs, with_lowest

from annotrace.experiments import tables

CROWDS = {
    "labelme": "LabelMe",
    "sentiment": "sentiment",
    "cifar10n": "CIFAR-10N",
    "flippers": "flippers",
    "hammers": "hammers",
}

JOINT = ("auto", "trace", "trace@paper", "two-stage", "vanilla", "oracle")

LABELS_ALONE = ("dawid-skene", "majority")


def crowds_table(figure: str, methods: Sequence[str]) -> str:
    """Return one measure of `benchmarks/small_data.py` by method and crowd."""
    runs = read_runs("small_data")
    rows = [
        [mean(only(runs, method=method, experiment=crowd), figure) for crowd in CROWDS]
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
    runs = only(read_runs("small_data"), experiment=crowd)
    methods = [m for m in (*JOINT, *LABELS_ALONE) if only(runs, method=m)]
    lines = [
        f"| method | {' | '.join(figures.values())} | seconds |",
        "|---" + "|---:" * (len(figures) + 1) + "|",
    ]
    for method in methods:
        own = only(runs, method=method)
        cells = [with_lowest(own, name) for name in figures]
        seconds = mean(own, "seconds")
        cells.append("" if seconds is None else f"{seconds:.1f}")
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def aggregation_table() -> str:
    """Return the mean accuracy of aggregations over eleven crowds."""
    runs = only(read_runs("aggregation_accuracy"), library="annotrace")
    methods = list(dict.fromkeys(run["method"] for run in runs))
    rows = [[mean(only(runs, method=method), "accuracy")] for method in methods]
    return markdown(["method", "mean of eleven crowds"], methods, rows)


def recipe_table() -> str:
    """Return what the recipe gives each method, from `benchmarks/recipe.py`."""
    runs, rows = read_runs("recipe"), []
    for crowd, method in dict.fromkeys((run["set"], run["method"]) for run in runs):
        cells = []
        for recipe in ("none", "default"):
            own = only(runs, set=crowd, method=method, recipe=recipe)
            for measure in ("accuracy", "posterior_accuracy"):
                cells.append(f"{mean(own, measure):.3f}".removeprefix("0"))
        rows.append([crowd, f"`{method}`", *cells])
    headers = ["crowd", "method", "plain", "posterior", "recipe", "posterior"]
    return tables.markdown(headers, rows, left=2)


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
    runs = only(read_runs("fast_step"), section="speed")
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


TABLES: dict[str, Callable[[], str]] = {
    "classifier": lambda: crowds_table("accuracy", JOINT),
    "truth": lambda: crowds_table("posterior_accuracy", (*JOINT, *LABELS_ALONE)),
    "digits": lambda: paper_tables.digits_table("accuracy"),
    "aggregation": aggregation_table,
    "zoo-real": lambda: zoo_tables.real_table(read_runs("zoo")),
    "zoo-families": lambda: zoo_tables.families_table(read_runs("zoo")),
    "mnist-paper": lambda: paper_runs_table.paper_runs_table(read_runs("mnist_paper")),
    "variants": lambda: variant_tables.by_variant_table(read_runs("variants")),
    "variants-sets": lambda: variant_tables.by_set_table(read_runs("variants")),
    **{crowd: partial(crowd_table, crowd) for crowd in CROWDS},
    "digits-one": lambda: paper_tables.digits_runs_table(1),
    "digits-five": lambda: paper_tables.digits_runs_table(5),
    "diagnosis": trust_tables.diagnosis_table,
    "recipe": recipe_table,
    "published": lambda: published_table.published_table(
        read_runs("published_settings")
    ),
    "label-studio-loop": lambda: loop_table.loop_table(read_runs("label_studio_loop")),
    "item-dependent": lambda: regional_table.regional_table(
        read_runs("item_dependent")
    ),
    "confidence": trust_tables.confidence_table,
    "flags": trust_tables.flags_table,
    "intervals": trust_tables.intervals_table,
    "accuracy": lambda: dependence_tables.accuracy_table(
        read_runs("accuracy_intervals")
    ),
    "verdicts": lambda: dependence_tables.verdicts_table(read_runs("verdicts")),
    "texts": lambda: item_tables.texts_table(read_runs("texts")),
    "augmentation": lambda: item_tables.augmentation_table(read_runs("augmentation")),
    "gold": trust_tables.gold_table,
    "steps": steps_table,
    "peers": lambda: speed_tables.peers_table(read_runs("bench")),
    "cifar10-dense": lambda: paper_table(4),
    "cifar10-one": lambda: paper_table(1),
    "mnist": paper_tables.mnist_table,
    "cardiac": paper_tables.cardiac_table,
    "reproduce-digits-dense": partial(paper_tables.all_methods_table, 5),
    "reproduce-digits-one": partial(paper_tables.all_methods_table, 1),
    "resnet50-dense": lambda: paper_table(4, "cifar10_resnet50", ("trace",)),
    "resnet50-one": lambda: paper_table(1, "cifar10_resnet50", ("trace",)),
    "resnet50-settings": paper_tables.resnet50_settings_table,
}
