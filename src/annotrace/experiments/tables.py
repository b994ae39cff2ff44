"""Markdown pages of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from annotrace.experiments.naming import density_name, look
from annotrace.experiments.published import Published
from annotrace.experiments.runs import Result
from annotrace.labels.writing import atomic_write

CM_ERROR_NOTE = (
    "CM error is the squared Frobenius distance divided by the number of classes, mean over "
    "annotators, times 100: the paper's formula. Its table 1 cannot have been made so: identity, "
    "which it says generalized EM predicts, would cost 59 with annotators like these, and it "
    "prints 4.47 and 6.13. Divided by the square of the number of classes it would be 5.9. So the "
    "paper's numbers are given as printed, and times the number of classes, probably our unit."
)

SELECTION = {
    "likelihood": "epoch chosen by the likelihood of held-out labels",
    "labels": "epoch chosen by accuracy against held-out labels",
    "truth": "epoch chosen by accuracy against the truth of held-out items",
    "last epoch": "last epoch kept",
}


def page(title: str, results: Sequence[Result], parts: Sequence[str]) -> str:
    """Put a page together: title, what was run, tables and notes."""
    return "\n\n".join([f"# {title}", _how(results), *parts]) + "\n"


def write(text: str, path: Path) -> Path:
    """Write a page whole or not at all, and give its path."""
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def markdown(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Give a table whose first `left` columns stand on the left, the others on the right."""
    rule = ["---"] * left + ["---:"] * (len(headers) - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (headers, rule, *rows))


def mean_and_deviation(values: Sequence[float], places: int = 2) -> str:
    """Give the mean, and the deviation where there are several; nothing for none."""
    if not values:
        return ""
    mean = f"{np.mean(values):.{places}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{places}f}"


def skill_tables(title: str, results: Sequence[Result], methods: Sequence[str]) -> str:
    """Give a page with a table for each crowd and density: a row a skill, two columns a method."""
    parts = []
    for crowd, density in dict.fromkeys((r["crowd"], r["density"]) for r in results):
        own = [r for r in results if (r["crowd"], r["density"]) == (crowd, density)]
        parts.append(f"## {crowd}, {density_name(density, own)}\n\n{_skill_table(own, methods)}")
    note = (
        "Accuracy in per cent, mean over draws, the lowest in brackets; CM error x 100 below it. "
        "*Dominant* tells of how many draws the mean matrix is diagonally dominant."
    )
    return page(title, results, [note, *parts])


def _skill_table(results: Sequence[Result], methods: Sequence[str]) -> str:
    shown = [name for name in methods if any(r["method"] == name for r in results)]
    headers = ["p", "dominant", "annotators", *(look(name).name for name in shown)]
    rows = []
    for skill in sorted({r["skill"] for r in results}):
        at_skill = [r for r in results if r["skill"] == skill]
        draws = {r["seed"]: r for r in at_skill}.values()
        dominant = f"{sum(r['dominant'] for r in draws)} of {len(draws)}"
        right = f"{100 * np.mean([r['annotator_accuracy'] for r in draws]):.1f}"
        cells = [_skill_cell([r for r in at_skill if r["method"] == name]) for name in shown]
        rows.append([f"{skill:g}", dominant, right, *cells])
    return markdown(headers, rows)


def _skill_cell(results: Sequence[Result]) -> str:
    if not results:
        return ""
    accuracy = [100 * r["accuracy"] for r in results]
    lowest = f" ({min(accuracy):.2f})" if len(accuracy) > 1 else ""
    errors = _errors(results)
    below = f"<br>{np.mean(errors):.2f}" if errors else ""
    return f"{np.mean(accuracy):.2f}{lowest}{below}"


def beside_published(
    results: Sequence[Result],
    methods: Sequence[str],
    density: int,
    published: Mapping[str, Published],
    unit: int | None = None,
) -> str:
    """Give a table of one density, the paper's numbers beside ours.

    `unit` is what the paper's CM errors are to be multiplied by to be in ours, if that is known.
    """
    headers = [
        density_name(density, results),
        "accuracy, paper",
        "accuracy, ours",
        "CM error, paper",
        *([] if unit is None else [f"the same x {unit}"]),
        "CM error, ours",
        "median seconds",
    ]
    rows = []
    for method in methods:
        own = [r for r in results if (r["method"], r["density"]) == (method, density)]
        if own or method in published:
            rows.append([look(method).name, *_pair(own, published.get(method), unit)])
    return markdown(headers, rows)


def _pair(own: Sequence[Result], paper: Published | None, unit: int | None) -> list[str]:
    """Give the cells of a method: accuracy and CM error, the paper's and ours, and seconds."""
    theirs = printed = scaled = ""
    if paper is not None:
        theirs = f"{paper.accuracy:.2f} ± {paper.accuracy_deviation:.2f}"
        if paper.cm_error is not None:
            printed = f"{paper.cm_error:.2f} ± {paper.cm_error_deviation:.2f}"
            scaled = f"{(unit or 1) * paper.cm_error:.1f}"
    accuracy = mean_and_deviation([100 * r["accuracy"] for r in own])
    errors = [printed] if unit is None else [printed, scaled]
    return [theirs, accuracy, *errors, mean_and_deviation(_errors(own)), _seconds(own)]


def by_method(results: Sequence[Result], methods: Sequence[str], density: int) -> str:
    """Give a table of one density: a row a method, the lowest accuracy beside the mean."""
    headers = [
        density_name(density, results),
        "accuracy",
        "lowest",
        "posterior",
        "CM error x 100",
        "label nll",
        "median seconds",
    ]
    rows = []
    for method in methods:
        own = [r for r in results if (r["method"], r["density"]) == (method, density)]
        if own:
            rows.append([look(method).name, *_own_cells(own)])
    return markdown(headers, rows)


def _own_cells(own: Sequence[Result]) -> list[str]:
    accuracy = [100 * r["accuracy"] for r in own]
    return [
        mean_and_deviation(accuracy),
        f"{min(accuracy):.2f}",
        f"{100 * np.mean([r['posterior_accuracy'] for r in own]):.2f}",
        mean_and_deviation(_errors(own)),
        f"{np.mean([r['label_nll'] for r in own]):.3f}",
        _seconds(own),
    ]


def _errors(results: Sequence[Result]) -> list[float]:
    """Give the CM errors times 100 of the results that have any."""
    return [100 * r["cm_error"] for r in results if r["cm_error"] is not None]


def _seconds(results: Sequence[Result]) -> str:
    """Give the median: the first run of a process also starts the device."""
    return f"{np.median([r['seconds'] for r in results]):.1f}" if results else ""


def _how(results: Sequence[Result]) -> str:
    """Say by which protocol and with what the results were made."""
    if not results:
        return "No runs."

    trained = [r for r in results if "selection" in r]

    def told(name: str) -> str:
        return ", ".join(sorted({str(r[name]) for r in results if r.get(name)}))

    versions = {
        package: " and ".join(sorted({r["versions"][package] for r in results}))
        for package in ("annotrace", "torch")
    }
    parts = [
        f"Protocol *{told('protocol')}*",
        _selection(trained),
        f"{len(results)} runs",
        f"{sum(r.get('seconds', 0.0) for r in results) / 60:.1f} minutes of training",
        f"on {told('device')}" if told("device") else "",
        *(f"{package} {version}" for package, version in versions.items()),
    ]
    return ", ".join(part for part in parts if part) + "."


def _selection(results: Sequence[Result]) -> str:
    """Say what the epoch was chosen by, and of which methods by something else."""
    pairs = dict.fromkeys((r["selection"], look(r["method"]).name) for r in results)
    methods = {how: [name for by, name in pairs if by == how] for how, _ in pairs}
    usual = max(sorted(methods), key=lambda how: len(methods[how]), default=None)
    others = [
        f"{SELECTION[how]} for {' and '.join(methods[how])}"
        for how in sorted(methods)
        if how != usual
    ]
    return ", ".join([SELECTION[usual], *others]) if usual else ""
