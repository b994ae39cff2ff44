"""Colours, names and titles of all figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Distinguishable with the usual kinds of colour blindness (Okabe and Ito).
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
OTHERS = "#B8B8B8"
INK, PALE, ALARM = "#222222", "#767676", "#B3261E"
LONGEST_NAME = 28


def shown(name: Any, longest: int = LONGEST_NAME) -> str:
    """Return a name on one line, cut if it is long."""
    text = " ".join(str(name).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


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
