"""Training curves, as numbers that a template draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from annotrace.report.result import Result
from annotrace.training import Epoch, best_epoch

WIDTH, HEIGHT = 560, 200
# Points of a line: more cannot be seen, and would only make the page larger.
MOST_POINTS = 300


class Tick(NamedTuple):
    """A place on an axis, and what stands there."""

    at: float
    text: str


class Curve(NamedTuple):
    """One line over the epochs.

    Attributes
    ----------
    title, said : str
        What it shows, in a few words and as a sentence.
    lines : list of str
        Points of each stretch, as svg's polyline takes them; a new one where training began anew.
    x, y : list of Tick
    best : (float, float) or None
        The epoch that was kept.
    """

    title: str
    said: str
    lines: list[str]
    x: list[Tick]
    y: list[Tick]
    best: tuple[float, float] | None = None


def curves_of(result: Result) -> list[Curve]:
    """Give the curves of a training, or of an aggregation's iterations."""
    if result.history:
        return _training(result.history)
    objective = [float(value) for value in result.objective]
    if len(objective) < 2:
        return []
    said = (
        f"It rose from {objective[0]:,.1f} to {objective[-1]:,.1f} in {len(objective)} iterations."
    )
    return [_curve("What is maximised, by iteration", said, [list(enumerate(objective, start=1))])]


def _training(history: Sequence[Epoch]) -> list[Curve]:
    # Stages of a method that train on different things differ in whether labels are held out.
    stages = [list(part) for _, part in groupby(history, lambda epoch: epoch.held_out is None)]
    losses = [[(epoch.number, epoch.loss) for epoch in part] for part in stages]
    said = f"It went from {history[0].loss:.3f} to {history[-1].loss:.3f} in {len(history)} epochs."
    if len(stages) > 1:
        said = f"{len(history)} epochs, in stages that learn from different things."
    curves = [_curve("Error on the labels learned from (loss)", said, losses)]
    best = best_epoch(list(history))
    if best is not None:
        held = [
            [(epoch.number, epoch.held_out) for epoch in part if epoch.held_out is not None]
            for part in stages
        ]
        kept = (best.number, float(best.held_out or 0.0))
        said = f"The lowest, {kept[1]:.3f}, was at epoch {kept[0]}."
        curves.append(
            _curve("Error on labels held out", said, [part for part in held if part], kept)
        )
    return curves


def _curve(
    title: str,
    said: str,
    parts: list[list[tuple[int, float]]],
    best: tuple[int, float] | None = None,
) -> Curve:
    points = [point for part in parts for point in part]
    first, last = points[0][0], points[-1][0]
    low, high = min(y for _, y in points), max(y for _, y in points)
    width, height = max(last - first, 1), max(high - low, 1e-9)

    def place(x: float, y: float) -> tuple[float, float]:
        return WIDTH * (x - first) / width, HEIGHT * (1 - (y - low) / height)

    step = -(-len(points) // MOST_POINTS)
    lines = [
        " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in part[::step]) for part in parts
    ]
    return Curve(
        title,
        said,
        lines,
        [Tick(place(x, 0)[0], f"{x:g}") for x in sorted({first, (first + last) // 2, last})],
        [Tick(place(0, y)[1], _short(y)) for y in (low, (low + high) / 2, high)],
        None if best is None else place(*best),
    )


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
