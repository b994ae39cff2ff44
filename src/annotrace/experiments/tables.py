"""Markdown pages of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotrace.atomic import atomic_write
from annotrace.experiments.results import Result

METHOD_NAMES = {
    "trace": "trace",
    "no-trace": "without the trace",
    "trace-refit": "`trace`, then a new network",
    "mbem": "MBEM",
    "gem": "generalized EM",
    "single-cm": "single CM",
    "wdn": "Weighted Doctor Net",
    "soft-bootstrap": "soft bootstrap",
    "crossfit": "cross-fitted EM (ours)",
    "auto": "CrowdClassifier (ours)",
}
"""Names of methods in tables and figures, if not their short name."""

SELECTION = {
    "likelihood": "epoch chosen by the likelihood of held-out labels",
    "labels": "epoch chosen by accuracy against held-out labels",
    "truth": "epoch chosen by accuracy against the truth of held-out items",
    "last epoch": "last epoch kept",
}


class Published(NamedTuple):
    """The paper's numbers: accuracy in per cent and CM error x 100, each with its deviation."""

    accuracy: float
    accuracy_deviation: float
    cm_error: float | None = None
    cm_error_deviation: float | None = None


def method_name(method: str) -> str:
    """Return the name of a method in tables and figures."""
    return METHOD_NAMES.get(method, method)


def density_name(density: int, results: Sequence[Result]) -> str:
    """Return the name of a number of labels per item; "dense" if all annotators label all."""
    if density == 1:
        return "one label per item"
    dense = any(len(r["true_skills"]) == density == r["density"] for r in results)
    return f"dense labels ({density} per item)" if dense else f"{density} labels per item"


def write_page(path: Path, title: str, results: Sequence[Result], parts: Sequence[str]) -> Path:
    """Write a page with a title, how the results were made, and tables; return its path."""
    text = "\n\n".join([f"# {title}", _provenance(results), *parts]) + "\n"
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def markdown(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table with its first `left` columns aligned left, the others right."""
    rule = ["---"] * left + ["---:"] * (len(headers) - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (headers, rule, *rows))


def mean_and_deviation(values: Sequence[float]) -> str:
    """Return the mean, with the deviation if there are several values; "" for none."""
    if not values:
        return ""
    deviation = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{deviation}"


def write_skill_page(
    path: Path, title: str, results: Sequence[Result], methods: Sequence[str]
) -> Path:
    """Write a page with one table per group of annotators and density, one row per skill."""
    parts = [
        "Accuracy in per cent, mean over draws, the lowest in brackets; CM error x 100 below it. "
        "*Dominant* counts the draws whose mean matrix is diagonally dominant."
    ]
    for crowd, density in dict.fromkeys((r["crowd"], r["density"]) for r in results):
        own = [r for r in results if (r["crowd"], r["density"]) == (crowd, density)]
        parts.append(f"## {crowd}, {density_name(density, own)}\n\n{_skill_table(own, methods)}")
    return write_page(path, title, results, parts)


def _skill_table(results: Sequence[Result], methods: Sequence[str]) -> str:
    shown = [name for name in methods if any(r["method"] == name for r in results)]
    rows = []
    for skill in sorted({r["skill"] for r in results}):
        at_skill = [r for r in results if r["skill"] == skill]
        draws = {r["seed"]: r for r in at_skill}.values()
        dominant = f"{sum(r['dominant'] for r in draws)} of {len(draws)}"
        correct = f"{100 * np.mean([r['annotator_accuracy'] for r in draws]):.1f}"
        cells = [_skill_cell([r for r in at_skill if r["method"] == name]) for name in shown]
        rows.append([f"{skill:g}", dominant, correct, *cells])
    return markdown(["p", "dominant", "annotators", *map(method_name, shown)], rows)


def _skill_cell(results: Sequence[Result]) -> str:
    if not results:
        return ""
    accuracy = [100 * r["accuracy"] for r in results]
    lowest = f" ({min(accuracy):.2f})" if len(accuracy) > 1 else ""
    errors = _cm_errors(results)
    return f"{np.mean(accuracy):.2f}{lowest}" + (f"<br>{np.mean(errors):.2f}" if errors else "")


def beside_published(
    results: Sequence[Result],
    methods: Sequence[str],
    density: int,
    published: Mapping[str, Published],
    unit: int | None = None,
) -> str:
    """Return a table of one density with the paper's numbers beside ours.

    `unit` converts the paper's CM errors to ours, if the factor is known.
    """
    scaled = [] if unit is None else [f"the same x {unit}"]
    headers = ["accuracy, paper", "accuracy, ours", "CM error, paper", *scaled, "CM error, ours"]
    rows = []
    for method in methods:
        own, paper = _of(results, method, density), published.get(method)
        if own or paper:
            rows.append([method_name(method), *_compared(own, paper, unit), _seconds(own)])
    return markdown([density_name(density, results), *headers, "median seconds"], rows)


def _compared(own: Sequence[Result], paper: Published | None, unit: int | None) -> list[str]:
    accuracy, errors = "", [""] if unit is None else ["", ""]
    if paper is not None:
        accuracy = f"{paper.accuracy:.2f} ± {paper.accuracy_deviation:.2f}"
        if paper.cm_error is not None:
            printed = f"{paper.cm_error:.2f} ± {paper.cm_error_deviation:.2f}"
            errors = [printed] if unit is None else [printed, f"{unit * paper.cm_error:.1f}"]
    ours = mean_and_deviation([100 * r["accuracy"] for r in own])
    return [accuracy, ours, *errors, mean_and_deviation(_cm_errors(own))]


def by_method(results: Sequence[Result], methods: Sequence[str], density: int) -> str:
    """Return a table of one density: one row per method, the lowest accuracy beside the mean."""
    headers = ["accuracy", "lowest", "posterior", "CM error x 100", "label nll", "median seconds"]
    rows = []
    for method in methods:
        if own := _of(results, method, density):
            accuracy = [100 * r["accuracy"] for r in own]
            cells = [
                mean_and_deviation(accuracy),
                f"{min(accuracy):.2f}",
                f"{100 * np.mean([r['posterior_accuracy'] for r in own]):.2f}",
                mean_and_deviation(_cm_errors(own)),
                f"{np.mean([r['label_nll'] for r in own]):.3f}",
            ]
            rows.append([method_name(method), *cells, _seconds(own)])
    return markdown([density_name(density, results), *headers], rows)


def _of(results: Sequence[Result], method: str, density: int) -> list[Result]:
    return [r for r in results if (r["method"], r["density"]) == (method, density)]


def _cm_errors(results: Sequence[Result]) -> list[float]:
    return [100 * r["cm_error"] for r in results if r["cm_error"] is not None]


def _seconds(results: Sequence[Result]) -> str:
    """Return the median: the first run of a process also starts the device."""
    return f"{np.median([r['seconds'] for r in results]):.1f}" if results else ""


def _provenance(results: Sequence[Result]) -> str:
    """Return the protocol, device and versions that results come from."""
    if not results:
        return "No runs."

    def values(name: str) -> str:
        return ", ".join(sorted({str(r[name]) for r in results if r.get(name)}))

    def version(package: str) -> str:
        return " and ".join(sorted({r["versions"][package] for r in results}))

    parts = [
        f"Protocol *{values('protocol')}*",
        _selection([r for r in results if "selection" in r]),
        f"{len(results)} runs",
        f"{sum(r.get('seconds', 0.0) for r in results) / 60:.1f} minutes of training",
        f"on {values('device')}" if values("device") else "",
        *(f"{package} {version(package)}" for package in ("annotrace", "torch")),
    ]
    return ", ".join(part for part in parts if part) + "."


def _selection(results: Sequence[Result]) -> str:
    """Return how the epoch was chosen, and for which methods differently."""
    pairs = dict.fromkeys((r["selection"], method_name(r["method"])) for r in results)
    methods = {how: [name for by, name in pairs if by == how] for how, _ in pairs}
    usual = max(sorted(methods), key=lambda how: len(methods[how]), default=None)
    if usual is None:
        return ""
    others = [
        f"{SELECTION[how]} for {' and '.join(methods[how])}"
        for how in sorted(methods)
        if how != usual
    ]
    return ", ".join([SELECTION[usual], *others])
