"""Figures in the paper's form, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.experiments.naming import density_name, look
from annotrace.experiments.runs import Result
from annotrace.labels.writing import atomic_write
from annotrace.report.matrix import draw_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Titled = tuple[str, NDArray[Any]]

PNG_DPI = 150
_STYLE = {
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
# Later curves are thinner, so that one that lies on another hides nothing.
_CURVES = (("#0072B2", 2.8), ("#D55E00", 2.0), ("#009E73", 1.4), ("#CC79A7", 0.9), ("#000000", 0.6))


@contextmanager
def figure(path: Path, width: float, height: float, written: list[Path]) -> Iterator[Figure]:
    """Give an empty figure, and save what was drawn as SVG and PNG.

    Parameters
    ----------
    path : Path
        Without an ending.
    width, height : float
        In inches.
    written : list of Path
        Takes the files.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = _STYLE  # typed by matplotlib as a dict of its own keys, by name
    with matplotlib.rc_context(style):
        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn
        for ending, extra in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": PNG_DPI})):
            name = path.with_name(f"{path.name}.{ending}")
            with atomic_write(name) as file:
                drawn.savefig(file, format=ending, **extra)
            written.append(name)


def draw_matrices(
    rows: Sequence[Sequence[Titled]],
    path: Path,
    ticks: Sequence[str] | None = None,
    percent: bool = False,
) -> list[Path]:
    """Draw confusion matrices in a grid: true classes down, reported across.

    Parameters
    ----------
    rows : sequence of rows of (title, ndarray of shape (n_classes, n_classes))
    path : Path
    ticks : sequence of str, optional
        Names of the classes.
    percent : bool
        Write the rounded per cents into the cells.
    """
    written: list[Path] = []
    columns = max(map(len, rows))
    with figure(path, 2.3 * columns, 2.5 * len(rows), written) as drawn:
        grid = drawn.subplots(len(rows), columns, squeeze=False)
        for place, row in enumerate(rows):
            for axes in grid[place, len(row) :]:
                axes.set_axis_off()
            for axes, (title, matrix) in zip(grid[place], row, strict=False):
                draw_matrix(axes, matrix, ticks, percent, fontsize=5 if percent else 6)
                axes.set_title(title)
            grid[place, 0].set_ylabel("true")
        for axes in grid[-1]:
            axes.set_xlabel("reported")
    return written


def draw_images(rows: Sequence[Sequence[Titled]], path: Path) -> list[Path]:
    """Draw grey images (height, width) with titles in a grid."""
    written: list[Path] = []
    columns = max(map(len, rows))
    with figure(path, 1.6 * columns, 1.8 * len(rows), written) as drawn:
        grid = drawn.subplots(len(rows), columns, squeeze=False)
        for row, line in zip(rows, grid, strict=True):
            for axes, (title, image) in zip(line, row, strict=False):
                axes.imshow(image, cmap="gray", vmin=0, vmax=255)
                axes.set_title(title)
                axes.set_axis_off()
    return written


def draw_skills(
    names: Sequence[str], true: NDArray[Any], estimated: NDArray[Any], path: Path
) -> list[Path]:
    """Draw estimated skills against true ones, each annotator by name."""
    written: list[Path] = []
    with figure(path, 3.6, 3.4, written) as drawn:
        axes = drawn.subplots()
        axes.plot([0, 1], [0, 1], color="#bbbbbb", linestyle="--")
        axes.scatter(true, estimated, color=look("trace").colour)
        # Names stand on either side in turn, so that those of like skill are not over each other.
        for place, k in enumerate(np.argsort(true)):
            side, offset = [("left", (6, -7)), ("right", (-6, 3))][place % 2]
            point = (true[k], estimated[k])
            axes.annotate(names[k], point, offset, textcoords="offset points", ha=side, fontsize=7)
        least = min(true.min(), estimated.min()) - 0.05
        axes.set(xlim=(least, 1), ylim=(least, 1), xlabel="true skill", ylabel="estimated skill")
    return written


def draw_panels_of_curves(
    panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], path: Path
) -> list[Path]:
    """Draw validation accuracy against steps, a panel a method, a curve a setting."""
    written: list[Path] = []
    with figure(path, 3.3 * len(panels), 2.9, written) as drawn:
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
    """Draw the accuracy of every run, a row a method, a panel a density."""
    written: list[Path] = []
    shown = [name for name in methods if any(r["method"] == name for r in results)]
    densities = sorted({r["density"] for r in results}, reverse=True)
    with figure(path, 3.6 * max(1, len(densities)), 0.28 * len(shown) + 1, written) as drawn:
        grid = drawn.subplots(1, max(1, len(densities)), sharey=True, squeeze=False)[0]
        for axes, density in zip(grid, densities, strict=True):
            for place, name in enumerate(reversed(shown)):
                own = [r for r in results if (r["method"], r["density"]) == (name, density)]
                accuracy = [100 * r["accuracy"] for r in own]
                axes.scatter(accuracy, [place] * len(own), color=look(name).colour, s=18)
            axes.set_yticks(range(len(shown)), [look(name).name for name in reversed(shown)])
            axes.set(title=density_name(density, results), xlabel="accuracy, %")
    return written
