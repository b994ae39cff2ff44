"""Simulated ultrasound views of the heart, and eight people who name them.

The paper's cardiac set is private. This stands in for it and shows the same: six views seen through
speckle, of which A5C looks like A3C with one more faint chamber, and annotators who are good but
confuse these two, beside two who have not learned the views. Nothing here is a measurement of
hearts or of sonographers.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from annotrace.data import LabelledSet
from annotrace.labels.vocabulary import as_names

VIEWS = ("PLAX", "PSAX", "A2C", "A3C", "A4C", "A5C")
EXPERTS, NON_EXPERTS = 6, 2
SIZE = 96

_CHUNK = 256
_HALF_ANGLE = 0.72


class Chamber(NamedTuple):
    """A cavity: centre (across, down), half-axes, turn in radians, and how dark it is."""

    across: float
    down: float
    width: float
    height: float
    turn: float = 0.0
    depth: float = 1.0


_A3C = (
    Chamber(0.12, 0.40, 0.15, 0.26),
    Chamber(0.18, 0.79, 0.14, 0.12),
    Chamber(-0.07, 0.66, 0.07, 0.11, 0.3),
    Chamber(-0.23, 0.42, 0.09, 0.17, 0.0, 0.8),
)
_CHAMBERS: dict[str, tuple[Chamber, ...]] = {
    "PLAX": (
        Chamber(-0.12, 0.52, 0.32, 0.16, -0.25),
        Chamber(0.30, 0.45, 0.18, 0.08, -0.25),
        Chamber(0.26, 0.70, 0.19, 0.13),
        Chamber(0.00, 0.27, 0.20, 0.06, 0.0, 0.8),
    ),
    "PSAX": (Chamber(0.06, 0.55, 0.21, 0.21), Chamber(-0.28, 0.52, 0.10, 0.25, 0.2)),
    "A2C": (Chamber(0.02, 0.40, 0.17, 0.28), Chamber(0.02, 0.80, 0.17, 0.13)),
    "A3C": _A3C,
    "A4C": (
        Chamber(0.18, 0.42, 0.14, 0.26),
        Chamber(-0.19, 0.44, 0.13, 0.23),
        Chamber(0.18, 0.81, 0.15, 0.11),
        Chamber(-0.20, 0.81, 0.15, 0.11),
    ),
    "A5C": (*_A3C, Chamber(-0.25, 0.78, 0.12, 0.10, 0.0, 0.6)),
}
_MOST_CHAMBERS = max(map(len, _CHAMBERS.values()))


def cardiac_annotators() -> NDArray[np.float64]:
    """Give the six experts and then the two non-experts, shape (8, 6, 6).

    Experts are right 94 to 86 % of the time outside the twins, call A5C A3C more often than the
    other way round, and err within parasternal or apical views otherwise. Non-experts tend to take
    any apical view for A4C and PSAX for PLAX, or guess; one of them knows more than the other.
    """
    experts = [
        _annotator(right, twin)
        for right, twin in (
            (0.94, 0.20),
            (0.93, 0.28),
            (0.92, 0.34),
            (0.90, 0.40),
            (0.88, 0.46),
            (0.86, 0.52),
        )
    ]
    habit = np.eye(6)[[0, 0, 4, 4, 4, 4]]
    spread = np.full((6, 6), 1 / 6)
    student = 0.4 * np.eye(6) + 0.4 * habit + 0.2 * spread
    novice = 0.1 * np.eye(6) + 0.55 * habit + 0.35 * spread
    return np.stack([*experts, student, novice])


def _annotator(right: float, twin: float) -> NDArray[np.float64]:
    """Give an expert who calls A5C A3C with probability `twin`, and A3C A5C a third as often."""
    matrix = np.zeros((6, 6))
    for group in ([0, 1], [2, 3, 4, 5]):
        for view in group:
            matrix[view, group] = (1 - right) / (len(group) - 1)
            matrix[view, view] = right
    for view, other, share in ((3, 5, twin / 3), (5, 3, twin)):
        matrix[view, view] += matrix[view, other] - share
        matrix[view, other] = share
    return matrix


def cardiac_views(n_items: int, random_state: int = 0) -> LabelledSet:
    """Draw views, each of the six as likely.

    Parameters
    ----------
    n_items, random_state : int

    Returns
    -------
    LabelledSet
        X is uint8 of shape (n_items, 96, 96).
    """
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, len(VIEWS), n_items).astype(np.int32)
    X = np.empty((n_items, SIZE, SIZE), np.uint8)

    parts = [slice(start, start + _CHUNK) for start in range(0, n_items, _CHUNK)]

    def draw(part: slice, chance: _Chance) -> None:
        X[part] = _draw(y[part], chance)

    n_threads = os.cpu_count() or 1
    with ThreadPoolExecutor(n_threads) as pool:
        while parts:
            some, parts = parts[:n_threads], parts[n_threads:]
            list(pool.map(draw, some, [_Chance.draw(len(y[part]), rng) for part in some]))
    return LabelledSet(X, y, as_names(VIEWS))


class _Moves(NamedTuple):
    """How chambers of one place differ from image to image."""

    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    depth: NDArray[np.float64]


class _Chance(NamedTuple):
    """All that is random in some images: drawn in order, the images are drawn at the same time."""

    turn: NDArray[np.float32]
    scale: NDArray[np.float32]
    shift: NDArray[np.float32]
    tissue: NDArray[np.float32]
    chambers: list[_Moves]
    attenuation: NDArray[np.float32]
    speckle: list[NDArray[np.float32]]
    gain: NDArray[np.float32]

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> _Chance:
        """Draw it for so many images."""

        def normal(mean: float, deviation: float, *shape: int) -> NDArray[np.float32]:
            return rng.normal(mean, deviation, (*shape, n, 1, 1)).astype(np.float32)

        def uniform(low: float, high: float) -> NDArray[np.float32]:
            return rng.uniform(low, high, (n, 1, 1)).astype(np.float32)

        def field() -> NDArray[np.float32]:
            return rng.standard_normal((n, SIZE, SIZE), np.float32)

        return cls(
            turn=normal(0, 0.12),
            scale=normal(1, 0.08),
            shift=normal(0, 0.04, 2),
            tissue=field(),
            chambers=[
                _Moves(
                    centre=rng.normal(0, 0.015, (n, 2)),
                    axes=rng.normal(1, 0.1, (n, 2)).clip(0.7, 1.3),
                    depth=rng.uniform(0.6, 1.0, n),
                )
                for _ in range(_MOST_CHAMBERS)
            ],
            attenuation=uniform(0.2, 1.2),
            speckle=[field(), field()],
            gain=uniform(0.7, 1.3),
        )


def _draw(y: NDArray[np.int32], chance: _Chance) -> NDArray[np.uint8]:
    """Draw one image for each class in `y`: tissue with cavities, speckle, a sector of a circle."""
    across, down = _beam_grid()
    turned_across, turned_down = _moved(across, down, chance)
    tissue = 0.55 + 0.25 * _smooth(chance.tissue, 10)
    for place, moves in enumerate(chance.chambers):
        inside, wall = _cavity(y, place, turned_across, turned_down, moves)
        tissue = tissue * (1 - 0.85 * inside) + 0.35 * wall
    attenuation = np.exp(-chance.attenuation * down)
    image = tissue.clip(0.02) * attenuation * _speckle(chance.speckle)
    bright = np.log1p(6 * chance.gain * image) / np.log1p(9)
    seen = (np.abs(np.arctan2(across, down)) < _HALF_ANGLE) & (np.hypot(across, down) < 1)
    pixels: NDArray[np.uint8] = (255 * (bright * seen).clip(0, 1)).astype(np.uint8)
    return pixels


def _beam_grid() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    down, across = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    return (across - SIZE / 2) / (0.72 * SIZE), down / SIZE


def _moved(
    across: NDArray[np.float32], down: NDArray[np.float32], chance: _Chance
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Turn, shift and scale the heart a little, differently for each image: (n, SIZE, SIZE)."""
    shift, cos, sin = chance.shift, np.cos(chance.turn), np.sin(chance.turn)
    u, v = (across - shift[0]) / chance.scale, (down - 0.55 - shift[1]) / chance.scale
    return cos * u + sin * v, cos * v - sin * u + 0.55


def _cavity(
    y: NDArray[np.int32],
    place: int,
    across: NDArray[np.float32],
    down: NDArray[np.float32],
    moves: _Moves,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Give how far inside the chamber in this place of each view a pixel is, and its wall."""
    nothing = Chamber(0, 0, 1, 1, 0, 0)
    table = np.array(
        [views[place] if place < len(views) else nothing for views in _CHAMBERS.values()],
        np.float32,
    )[y]
    table[:, :2] += moves.centre
    table[:, 2:4] *= moves.axes
    table[:, 5] *= moves.depth
    u0, v0, width, height, turn, depth = (column[:, None, None] for column in table.T)
    u, v = across - u0, down - v0
    along, beside = np.cos(turn) * u + np.sin(turn) * v, np.cos(turn) * v - np.sin(turn) * u
    distance = np.hypot(along / width, beside / height).clip(max=6)
    inside = depth / (1 + np.exp(12 * (distance - 1)))
    return inside, depth * np.exp(-(((distance - 1.12) / 0.1) ** 2))


def _smooth(field: NDArray[np.float32], width: float) -> NDArray[np.float32]:
    """Blur noise, to a deviation of 1."""
    smooth: NDArray[np.float32] = gaussian_filter(field, (0, width, width), truncate=2.5)
    smooth /= smooth.std()
    return smooth


def _speckle(fields: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Give the length of a complex Gaussian field, as coherent waves have it: mean 1."""
    real, imaginary = (_smooth(field, 0.8) for field in fields)
    length = np.hypot(real, imaginary)
    speckle: NDArray[np.float32] = length / length.mean()
    return speckle
