"""Figures in the paper's form, as SVG and PNG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.atomic import atomic_write
from annotrace.experiments.results import Result
from annotrace.experiments.tables import density_name, method_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Titled = tuple[str, NDArray[Any]]

PNG_DPI = 150
_STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.facecolor": "white",
    # Equal results give equal files.
    "svg.hashsalt": "annotrace",
    "text.parse_math": False,
}
# Okabe and Ito's palette is safe for colour-blind readers; markers differ as well.
_LOOKS = {
    "trace": ("#0072B2", "o", "-"),
    "no-trace": ("#D55E00", "s", "-"),
    "mbem": ("#D55E00", "s", "-"),
    "gem": ("#E69F00", "^", "-"),
    "single-cm": ("#009E73", "D", "-"),
    "wdn": ("#CC79A7", "v", "-"),
    "soft-bootstrap": ("#E69F00", "^", "-"),
    "vanilla": ("#56B4E9", "s", "-"),
    "two-stage": ("#8C6D31", "P", "-"),
    "oracle": ("#000000", "", "--"),
    "crossfit": ("#6A3D9A", "X", "-"),
    "auto": ("#6A3D9A", "*", "-"),
    "annotators": ("#888888", "", ":"),
}
"""Colour, marker and line of a method."""

# Later curves are thinner, so that a curve on top of another does not hide it.
_CURVES = (("#0072B2", 2.8), ("#D55E00", 2.0), ("#009E73", 1.4), ("#CC79A7", 0.9), ("#000000", 0.6))
_AXIS = {"accuracy": "accuracy, %", "cm_error": "CM error x 100"}
CLOSE_UP = 90.0
"""Per cent: if every method is better, a figure shows the methods and not the annotators."""


def _look(method: str) -> tuple[str, str, str]:
    return _LOOKS.get(method, ("#555555", ".", "-"))


@contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[tuple[Figure, list[Path]]]:
    """Yield an empty figure of that many inches and the files, SVG and PNG, that it will be."""
    import matplotlib
    from matplotlib.figure import Figure

    formats: dict[str, Any] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": PNG_DPI}}
    files = [path.with_name(f"{path.name}.{suffix}") for suffix in formats]
    with matplotlib.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn, files
        for file, (suffix, extra) in zip(files, formats.items(), strict=True):
            with atomic_write(file) as target:
                drawn.savefig(target, format=suffix, **extra)


def draw_matrices(
    rows: Sequence[Sequence[Titled]],
    path: Path,
    classes: Sequence[str] | None = None,
    percent: bool = False,
) -> list[Path]:
    """Draw titled confusion matrices (n_classes, n_classes) in a grid."""
    from annotrace.report.canvas import draw_matrix

    columns = max(map(len, rows))
    with figure(path, 2.3 * columns, 2.5 * len(rows)) as (drawn, written):
        grid = drawn.subplots(len(rows), columns, squeeze=False)
        for line, row in zip(grid, rows, strict=True):
            for axes in line[len(row) :]:
                axes.set_axis_off()
            for axes, (title, matrix) in zip(line, row, strict=False):
                draw_matrix(axes, matrix, classes, percent, fontsize=5 if percent else 6)
                axes.set_title(title)
            line[0].set_ylabel("true")
        for axes in grid[-1]:
            axes.set_xlabel("reported")
    return written


def draw_images(images: Sequence[Titled], path: Path) -> list[Path]:
    """Draw titled grey images (height, width) in a row."""
    with figure(path, 1.6 * len(images), 1.8) as (drawn, written):
        grid = drawn.subplots(1, len(images), squeeze=False)[0]
        for axes, (title, image) in zip(grid, images, strict=True):
            axes.imshow(image, cmap="gray", vmin=0, vmax=255)
            axes.set_title(title)
            axes.set_axis_off()
    return written


def draw_skills(
    names: Sequence[str], true: NDArray[Any], estimated: NDArray[Any], path: Path
) -> list[Path]:
    """Draw estimated against true skills, both (n_annotators,), each point with its name."""
    with figure(path, 3.6, 3.4) as (drawn, written):
        axes = drawn.subplots()
        axes.plot([0, 1], [0, 1], color="#bbbbbb", linestyle="--")
        axes.scatter(true, estimated, color=_look("trace")[0])
        # Names alternate between both sides, so that those of similar skill do not overlap.
        for place, k in enumerate(np.argsort(true)):
            side, offset = [("left", (6, -7)), ("right", (-6, 3))][place % 2]
            point = (true[k], estimated[k])
            axes.annotate(names[k], point, offset, textcoords="offset points", ha=side, fontsize=7)
        least = min(true.min(), estimated.min()) - 0.05
        axes.set(xlim=(least, 1), ylim=(least, 1), xlabel="true skill", ylabel="estimated skill")
    return written


def draw_training_curves(
    panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], path: Path
) -> list[Path]:
    """Draw validation accuracy against steps: one panel per method, one curve per setting."""
    with figure(path, 3.3 * len(panels), 2.9) as (drawn, written):
        grid = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, curves) in zip(grid, panels.items(), strict=True):
            for (label, curve), (colour, width) in zip(curves.items(), _CURVES, strict=False):
                steps, accuracy = np.array(curve).T
                axes.plot(steps, 100 * accuracy, label=label, color=colour, linewidth=width)
            axes.set(title=title, xlabel="steps")
            if curves:
                axes.legend(loc="lower right", fontsize=8)
        grid[0].set_ylabel("validation accuracy, %")
    return written


def draw_methods(results: Sequence[Result], methods: Sequence[str], path: Path) -> list[Path]:
    """Draw the accuracy of every run: one row per method, one panel per density."""
    shown = [name for name in reversed(methods) if any(r["method"] == name for r in results)]
    densities = sorted({r["density"] for r in results}, reverse=True)
    with figure(path, 3.6 * len(densities), 0.28 * len(shown) + 1) as (drawn, written):
        grid = drawn.subplots(1, len(densities), sharey=True, squeeze=False)[0]
        for axes, density in zip(grid, densities, strict=True):
            own = [r for r in results if r["density"] == density]
            for place, name in enumerate(shown):
                accuracy = [100 * r["accuracy"] for r in own if r["method"] == name]
                axes.scatter(accuracy, [place] * len(accuracy), color=_look(name)[0], s=18)
            axes.set_yticks(range(len(shown)), [method_name(name) for name in shown])
            axes.set(title=density_name(density, results), xlabel="accuracy, %")
    return written


def draw_skill_curves(
    results: Sequence[Result], methods: Sequence[str], measures: Sequence[str], path: Path
) -> list[Path]:
    """Draw measures against the mean skill p: one row per measure, one column per group.

    Lines connect means over the draws that all methods have, so that they are comparable; a draw
    that only some methods have is a dot. Measures are "accuracy" and "cm_error".
    """
    groups = list(dict.fromkeys((r["crowd"], r["density"]) for r in results))
    several = len({crowd for crowd, _ in groups}) > 1
    width, margin = (2.7, 0.0) if several else (3.5, 0.4)
    with figure(path, width * len(groups), 2.7 * len(measures) + margin) as (drawn, written):
        grid = drawn.subplots(len(measures), len(groups), sharex=True, sharey="row", squeeze=False)
        for column, (crowd, density) in zip(grid.T, groups, strict=True):
            own = [r for r in results if (r["crowd"], r["density"]) == (crowd, density)]
            for axes, measure in zip(column, measures, strict=True):
                draw_panel(axes, own, methods, measure)
            name = density_name(density, own)
            column[0].set_title(f"{crowd}\n{name}" if several else name)
            column[-1].set_xlabel("mean skill p")
        for axes, measure in zip(grid[:, 0], measures, strict=True):
            axes.set_ylabel(_AXIS[measure])
        close_up(grid[0, 0], results)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
    return written


def close_up(axes: Axes, results: Sequence[Result]) -> None:
    """Start the axis just below the worst method if all are good; the legend has the annotators."""
    lowest = min(100 * r["accuracy"] for r in results)
    if lowest <= CLOSE_UP:
        return
    axes.set_ylim(lowest - 0.5, 100)
    for line in axes.lines:
        if line.get_label() == "annotators":
            values = np.asarray(line.get_ydata())
            line.set_label(f"annotators ({values[0]:.0f} to {values[-1]:.0f} %)")


def draw_panel(axes: Axes, results: Sequence[Result], methods: Sequence[str], measure: str) -> None:
    """Draw one measure of one group; the oracle, given the matrices, has no error to show."""
    shown = [name for name in methods if measure == "accuracy" or name != "oracle"]
    own = [r for r in results if r["method"] in shown and r[measure] is not None]
    shared = shared_draws(own)
    for name in shown:
        if mine := [r for r in own if r["method"] == name]:
            _curve(axes, name, mine, measure, shared)
    if measure == "accuracy":
        _curve(axes, "annotators", results, "annotator_accuracy", shared)
    _shade(axes, results)


def shared_draws(results: Sequence[Result]) -> set[tuple[float, int]]:
    """Return the (skill, seed) pairs that every method at the skill has.

    If an unfinished sweep has none at a skill, return all that it has there.
    """
    seeds: dict[float, dict[str, set[int]]] = {}
    for r in results:
        seeds.setdefault(r["skill"], {}).setdefault(r["method"], set()).add(r["seed"])
    return {
        (skill, seed)
        for skill, own in seeds.items()
        for seed in set.intersection(*own.values()) or set.union(*own.values())
    }


def _curve(
    axes: Axes,
    name: str,
    results: Sequence[Result],
    measure: str,
    shared: set[tuple[float, int]],
) -> None:
    """Draw the mean over shared draws against skill, and one dot per draw if there are several."""
    compared = [r for r in results if (r["skill"], r["seed"]) in shared]
    skills = sorted({r["skill"] for r in compared})
    values = [[100 * r[measure] for r in compared if r["skill"] == skill] for skill in skills]
    (colour, marker, line), ours = _look(name), name == "trace"
    axes.plot(
        skills,
        [np.mean(each) for each in values],
        label=method_name(name),
        color=colour,
        marker=marker,
        markersize=4,
        linestyle=line,
        linewidth=2.2 if ours else 1.3,
        zorder=3 if ours else 2,
    )
    draws = Counter(r["skill"] for r in results)
    dots = [(r["skill"], 100 * r[measure]) for r in results if draws[r["skill"]] > 1]
    if dots and marker:
        others = f"{method_name(name)}, other draws" if len(compared) < len(results) else None
        axes.plot(*zip(*dots, strict=True), ".", color=colour, alpha=0.45, zorder=2.5, label=others)


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
