"""Training curves as coordinates, which a template draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from annotrace.training import Epoch


WIDTH, HEIGHT = 560, 200
# Points per line: more would not be visible, and only enlarge the page.
MAX_POINTS = 300


class Tick(NamedTuple):
    """A position on an axis and its text."""

    at: float
    text: str


class Curve(NamedTuple):
    """One line over the epochs.

    Attributes
    ----------
    title, summary : str
        What it shows, in a few words and as a sentence.
    lines : list of str
        The points of each stage of training, in the format of svg's polyline.
    x, y : list of Tick
    best : (float, float) or None
        The point that is marked, such as the epoch that was kept.
    width, height : int
    """

    title: str
    summary: str
    lines: list[str]
    x: list[Tick]
    y: list[Tick]
    best: tuple[float, float] | None = None
    width: int = WIDTH
    height: int = HEIGHT


def curves_of(history: Sequence[Epoch], objective: Sequence[float]) -> list[Curve]:
    """Return the curves of a training, or of an aggregation's iterations."""
    if history:
        return _training(history)
    objective = [float(value) for value in objective]
    if len(objective) < 2:
        return []
    first, last = objective[0], objective[-1]
    summary = f"From {first:,.1f} to {last:,.1f} in {len(objective)} iterations."
    return [make_curve("Objective, by iteration", summary, [list(enumerate(objective, start=1))])]


def _training(history: Sequence[Epoch]) -> list[Curve]:
    from annotrace.training import best_epoch

    # Stages of a method that learn from different targets differ in whether labels are held out.
    stages = [list(part) for _, part in groupby(history, lambda epoch: epoch.held_out is None)]
    losses = [[(epoch.number, epoch.loss) for epoch in part] for part in stages]
    first, last, n = history[0].loss, history[-1].loss, len(history)
    summary = f"From {first:.3f} to {last:.3f} in {n} epochs."
    if len(stages) > 1:
        summary = f"{n} epochs, in stages that learn from different targets."
    curves = [make_curve("Training loss", summary, losses)]
    best = best_epoch(list(history))
    if best is not None:
        held = [
            [(epoch.number, epoch.held_out) for epoch in part if epoch.held_out is not None]
            for part in stages
        ]
        kept = (best.number, float(best.held_out or 0.0))
        summary = f"The lowest, {kept[1]:.3f}, was at epoch {kept[0]}."
        parts = [part for part in held if part]
        curves.append(make_curve("Loss on held-out labels", summary, parts, kept))
    return curves


def make_curve(
    title: str,
    summary: str,
    parts: list[list[tuple[int, float]]],
    best: tuple[int, float] | None = None,
    y_range: tuple[float, float] | None = None,
) -> Curve:
    """Return a curve through the points (x, y) of one or more parts, with one point marked.

    The y axis has the range of the points, or `y_range`, to compare several curves.
    """
    points = [point for part in parts for point in part]
    first, last = points[0][0], points[-1][0]
    low, high = y_range or (min(y for _, y in points), max(y for _, y in points))
    width, height = max(last - first, 1), max(high - low, 1e-9)

    def place(x: float, y: float) -> tuple[float, float]:
        return WIDTH * (x - first) / width, HEIGHT * (1 - (y - low) / height)

    step = -(-len(points) // MAX_POINTS)
    lines = [
        " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in part[::step]) for part in parts
    ]
    return Curve(
        title,
        summary,
        lines,
        [Tick(place(x, 0)[0], f"{x:g}") for x in sorted({first, (first + last) // 2, last})],
        [Tick(place(0, y)[1], _short(y)) for y in (low, (low + high) / 2, high)],
        None if best is None else place(*best),
    )


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
