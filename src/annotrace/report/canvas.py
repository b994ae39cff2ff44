"""What figures share: colours, names, titles, and the drawing of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Distinguishable with the usual kinds of colour blindness (Okabe and Ito).
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
OTHERS = "#B8B8B8"
INK, PALE, ALARM = "#222222", "#767676", "#B3261E"
MAX_NAME_LENGTH = 28
MAX_CLASSES_WITH_NUMBERS = 12
MAX_CLASSES_WITH_NAMES = 40


def shown(name: Any, length: int = MAX_NAME_LENGTH) -> str:
    """Return a name on one line, cut if it is long."""
    text = " ".join(str(name).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure; sizes in inches."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=120, layout="constrained").subplots()


def write_title(axes: Axes, title: str, remark: str) -> None:
    """Write a title, and a remark below it: beside it they would overlap on narrow axes."""
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=18, parse_math=False)
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(remark, (0, 1), (0, 6), fontsize=8.5, color=PALE, **place)


def make_plain(axes: Axes) -> None:
    """Remove all but what helps to read values along the x axis."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#cccccc")
    axes.tick_params(length=0, labelsize=9)
    axes.grid(visible=True, axis="x", color="#ececec")
    axes.set_axisbelow(True)


def draw_matrix(
    axes: Axes,
    matrix: NDArray[Any],
    classes: Sequence[Any] | None = None,
    percent: bool = False,
    fontsize: float | None = None,
) -> None:
    """Draw a matrix (n_classes, n_classes) as blue cells, dark for one and white for zero.

    Parameters
    ----------
    axes : matplotlib axes
    matrix : ndarray of shape (n_classes, n_classes)
    classes : sequence of length n_classes, optional
        Their names; left out if there are too many to read.
    percent : bool
        Write rounded percentages into the cells, if there are few enough to read.
    fontsize : float, optional
        Of the percentages; names are a little larger. By default what fits into a cell.
    """
    if fontsize is None:
        fontsize = float(np.clip(0.36 * _cell_in_points(axes, len(matrix)), 4, 8))
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set(visible=True, color="#cccccc")
    if classes is None or len(classes) > MAX_CLASSES_WITH_NAMES:
        axes.set(xticks=[], yticks=[])
    else:
        names: Any = [shown(name) for name in classes]
        places: Any = range(len(names))
        turned = 90 if max(map(len, names)) * len(names) > 36 else 0
        axes.set_xticks(places, names, rotation=turned, fontsize=fontsize + 1, parse_math=False)
        axes.set_yticks(places, names, fontsize=fontsize + 1, parse_math=False)
    if percent and len(matrix) <= MAX_CLASSES_WITH_NUMBERS:
        _write_cells(axes, matrix, fontsize)


def _cell_in_points(axes: Axes, n_classes: int) -> float:
    place = axes.get_position()
    width, height = axes.get_figure(root=True).get_size_inches()  # type: ignore[union-attr]
    return float(72 * min(place.width * width, place.height * height) / n_classes)


def _write_cells(axes: Axes, matrix: NDArray[Any], fontsize: float) -> None:
    for (true, reported), share in np.ndenumerate(matrix):
        colour = "white" if share > 0.55 else INK if share >= 0.005 else "#c4c4c4"
        look: Any = {"ha": "center", "va": "center", "fontsize": fontsize, "color": colour}
        axes.text(reported, true, f"{100 * share:.0f}", **look)
