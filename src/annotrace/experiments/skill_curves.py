"""Figures against the mean skill p of the annotators: 3, 6, 9, 10 and 11."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from annotrace.experiments.drawing import figure
from annotrace.experiments.naming import density_name, look
from annotrace.experiments.runs import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXIS = {"accuracy": "accuracy, %", "cm_error": "CM error x 100"}
CLOSE_UP = 90.0
"""Per cent: where every method is better, a picture shows the methods and not the annotators."""


def draw(
    results: Sequence[Result],
    methods: Sequence[str],
    measures: Sequence[str],
    path: Path,
    bound: str | None = None,
) -> list[Path]:
    """Draw one crowd: a row of panels a measure, a column a density.

    Lines go through the draws that all methods have, so that they can be compared; a draw that only
    some have is a dot.

    Parameters
    ----------
    results : sequence of dict
    methods : sequence of str
    measures : sequence of {"accuracy", "cm_error"}
    path : Path
    bound : str, optional
        A method that is given the matrices, so that it has no error of them.
    """
    written: list[Path] = []
    densities = sorted({r["density"] for r in results}, reverse=True)
    with figure(path, 3.5 * len(densities), 2.7 * len(measures) + 0.4, written) as drawn:
        grid = drawn.subplots(
            len(measures), len(densities), sharex=True, sharey="row", squeeze=False
        )
        for row, measure in zip(grid, measures, strict=True):
            for axes, density in zip(row, densities, strict=True):
                own = [r for r in results if r["density"] == density]
                shown = [name for name in methods if measure == "accuracy" or name != bound]
                _panel(axes, own, shown, measure)
                axes.set_title(density_name(density, own))
            row[0].set_ylabel(AXIS[measure])
            if measure == "accuracy":
                close_up(row[0], results)
        for axes in grid[-1]:
            axes.set_xlabel("mean skill p")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
    return written


def draw_by_crowd(results: Sequence[Result], methods: Sequence[str], path: Path) -> list[Path]:
    """Draw accuracy over CM error, a column a crowd and density."""
    written: list[Path] = []
    groups = list(dict.fromkeys((r["crowd"], r["density"]) for r in results))
    if not groups:
        return written
    with figure(path, 2.7 * len(groups), 5.4, written) as drawn:
        grid = drawn.subplots(2, len(groups), sharex=True, sharey="row", squeeze=False)
        for place, group in enumerate(groups):
            own = [r for r in results if (r["crowd"], r["density"]) == group]
            for axes, measure in zip(grid[:, place], AXIS, strict=True):
                _panel(axes, own, methods, measure)
            grid[0, place].set_title(f"{group[0]}\n{density_name(group[1], own)}")
            grid[1, place].set_xlabel("mean skill p")
        for axes, measure in zip(grid[:, 0], AXIS, strict=True):
            axes.set_ylabel(AXIS[measure])
        handles, labels = grid[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
    return written


def close_up(axes: Axes, results: Sequence[Result]) -> None:
    """Begin just below the worst method, where all are good; the legend has who is left out."""
    lowest = min(100 * r["accuracy"] for r in results)
    if lowest <= CLOSE_UP:
        return
    axes.set_ylim(lowest - 0.5, 100)
    for line in axes.lines:
        if line.get_label() == look("annotators").name:
            right = np.asarray(line.get_ydata())
            line.set_label(f"{line.get_label()} ({right[0]:.0f} to {right[-1]:.0f} %)")


def _panel(axes: Axes, results: Sequence[Result], methods: Sequence[str], measure: str) -> None:
    told = [r for r in results if r["method"] in methods and r[measure] is not None]
    shared = shared_draws(told)
    for name in methods:
        own = [r for r in told if r["method"] == name]
        if own:
            _curve(axes, name, own, measure, shared)
    if measure == "accuracy" and results:
        _curve(axes, "annotators", results, "annotator_accuracy", shared)
    _shade(axes, results)


def shared_draws(results: Sequence[Result]) -> set[tuple[float, int]]:
    """Give the skills and seeds that every method has which has the skill at all.

    Where an unfinished sweep has none, these are all that there are.
    """
    shared = set()
    for skill in {r["skill"] for r in results}:
        methods = {r["method"] for r in results if r["skill"] == skill}
        own = [
            {r["seed"] for r in results if (r["skill"], r["method"]) == (skill, name)}
            for name in methods
        ]
        shared |= {(skill, seed) for seed in set.intersection(*own) or set.union(*own)}
    return shared


def _curve(
    axes: Axes,
    name: str,
    results: Sequence[Result],
    measure: str,
    shared: set[tuple[float, int]],
) -> None:
    """Draw the mean over shared draws against skill, and a dot a draw where there are several."""
    compared = [r for r in results if (r["skill"], r["seed"]) in shared]
    skills = sorted({r["skill"] for r in compared})
    values = [[100 * r[measure] for r in compared if r["skill"] == skill] for skill in skills]
    shown = look(name)
    axes.plot(
        skills,
        [np.mean(each) for each in values],
        label=shown.name,
        color=shown.colour,
        marker=shown.marker,
        markersize=4,
        linestyle=shown.line,
        linewidth=2.2 if name == "trace" else 1.3,
        zorder=3 if name == "trace" else 2,
    )
    draws = Counter(r["skill"] for r in results)
    dots = [r for r in results if draws[r["skill"]] > 1]
    if dots and shown.marker:
        axes.plot(
            [r["skill"] for r in dots],
            [100 * r[measure] for r in dots],
            ".",
            color=shown.colour,
            alpha=0.45,
            zorder=2.5,
            label=f"{shown.name}, other draws" if len(compared) < len(results) else None,
        )


def _shade(axes: Axes, results: Sequence[Result]) -> None:
    """Shade the skills at which no draw has a diagonally dominant mean matrix."""
    skills = sorted({r["skill"] for r in results})
    dominant = {r["skill"] for r in results if r["dominant"]}
    lacking = [skill for skill in skills if skill not in dominant]
    if not lacking:
        return
    above = [skill for skill in skills if skill > lacking[-1]]
    end = (lacking[-1] + above[0]) / 2 if above else lacking[-1] + 0.02
    axes.axvspan(lacking[0] - 0.02, end, color="#dddddd", zorder=0)
