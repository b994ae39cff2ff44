"""The figure of growth curves, from the rows of `benchmarks/bench.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotrace.experiments.figures import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]

# Items, annotators, classes and labels per item are the sizes of a row.
CURVES: dict[str, tuple[str, Callable[[Row], int]]] = {
    "labels": ("labels", lambda row: row["sizes"][0] * row["sizes"][3]),
    "annotators": ("annotators", lambda row: row["sizes"][1]),
    "classes": ("classes", lambda row: row["sizes"][2]),
    "processes": ("processes", lambda row: row["n_processes"]),
}
LOOKS = {
    "dawid-skene": ("Dawid-Skene", "#0072B2", "o"),
    "ensemble": ("default", "#D55E00", "s"),
}
MEASURES: dict[str, Callable[[Row], float]] = {
    "CPU seconds per iteration": lambda row: row["cpu_seconds"] / row["iterations"],
    "peak memory, MB": lambda row: row["megabytes"],
}


def draw_growth(rows: Sequence[Row], path: Path) -> list[Path]:
    """Draw time and memory of our methods: a row per measure, a column per curve."""
    with figure(path, 9.6, 4.8) as (drawn, written):
        grid = drawn.subplots(len(MEASURES), len(CURVES), sharex="col", sharey="row")
        for line, (title, measure) in zip(grid, MEASURES.items(), strict=True):
            for axes, (part, (_, place)) in zip(line, CURVES.items(), strict=True):
                own = [r for r in rows if r["part"] == part and "stopped" not in r]
                _draw_panel(axes, own, place, measure)
            line[0].set_ylabel(title)
        for column, (part, (name, place)) in zip(grid.T, CURVES.items(), strict=True):
            own = [r for r in rows if r["part"] == part]
            column[0].set_title(_fixed(own[0], part) if own else "")
            column[-1].set_xlabel(name)
            _label_ticks(column[-1], sorted({place(row) for row in own}), part)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=len(LOOKS))
    return written


def _fixed(row: Row, part: str) -> str:
    """Return the sizes that are the same along a curve, on two lines."""
    shown = [name for name in CURVES if name not in (part, "processes")]
    *first, last = (f"{_short(CURVES[name][1](row))} {name}" for name in shown)
    return f"{', '.join(first)}\n{last}"


def _short(number: float, _: int = 0) -> str:
    """Return a number such as 300, 20k or 5M."""
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:g}{suffix}"
    return f"{number:g}"


def _label_ticks(axes: Axes, points: Sequence[int], part: str) -> None:
    """Label decades, or each number of processes."""
    if part == "processes":
        axes.set_xticks(points, [str(point) for point in points])
        axes.set_xlim(0.8, 1.25 * max(points, default=2))
    else:
        axes.xaxis.set_major_formatter(_short)


def _draw_panel(
    axes: Axes,
    rows: Sequence[Row],
    place: Callable[[Row], int],
    measure: Callable[[Row], float],
) -> None:
    """Draw a measure of each method against the size that grows."""
    for method, (name, colour, marker) in LOOKS.items():
        points = sorted((place(r), measure(r)) for r in rows if r["method"] == method)
        x, y = zip(*points, strict=True) if points else ((), ())
        axes.plot(x, y, label=name, color=colour, marker=marker, markersize=4)
    axes.set(xscale="log", yscale="log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.tick_params(which="minor", length=0, labelbottom=False)
