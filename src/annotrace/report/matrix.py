"""Drawing of a confusion matrix on any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotrace.report.canvas import INK, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CLASSES_WITH_NUMBERS = 12
MAX_CLASSES_WITH_NAMES = 40


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
