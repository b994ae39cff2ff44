"""Figure 7: views of the heart, named by six experts and two non-experts. Simulated.

The paper's set of 240,000 ultrasound images is private. This one has what matters here: six views
seen through speckle, of which A5C looks like A3C with one more faint chamber; experts who confuse
these two; two non-experts who have not learned the views; and two labels per image. Nothing here is
a measurement of hearts or of sonographers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from annotrace.data import LabelledSet
from annotrace.experiments import figures, simulated, tables
from annotrace.experiments.options import Options
from annotrace.experiments.plans import Experiment, Run, Split
from annotrace.experiments.results import Result
from annotrace.experiments.tables import Published
from annotrace.labels.vocabulary import as_names

NAMES = (*(f"expert {k}" for k in range(1, 7)), "non-expert 1", "non-expert 2")
NON_EXPERTS = {6, 7}
LABELS_PER_IMAGE = 2
SEEDS = 3

PUBLISHED = {
    "trace": Published(75.57, 0.16, 11.48, 0.48),
    "no-trace": Published(70.99, 3.31, 15.22, 0.94),
    "mbem": Published(73.91, 0.11, 12.18, 0.29),
    "wdn": Published(59.15, 1.60),
    "single-cm": Published(74.38, 0.29),
    "soft-bootstrap": Published(72.99, 0.17),
    "vanilla": Published(70.95, 0.44),
}
"""The paper's figure 7 (d)."""

METHODS = tuple(PUBLISHED)

NOTE = (
    "**Simulated.** The paper's numbers are for a private set of ultrasound images, ours for "
    "images drawn by `annotrace.experiments.cardiac`: the ranking of methods can be compared, the "
    "numbers cannot."
)

SIZE, _CHUNK = 96, 256
_A3C = (
    (0.12, 0.40, 0.15, 0.26, 0.0, 1.0),
    (0.18, 0.79, 0.14, 0.12, 0.0, 1.0),
    (-0.07, 0.66, 0.07, 0.11, 0.3, 1.0),
    (-0.23, 0.42, 0.09, 0.17, 0.0, 0.8),
)
# A chamber: centre (across, down), half-axes, rotation in radians, darkness.
_CHAMBERS = {
    "PLAX": (
        (-0.12, 0.52, 0.32, 0.16, -0.25, 1.0),
        (0.30, 0.45, 0.18, 0.08, -0.25, 1.0),
        (0.26, 0.70, 0.19, 0.13, 0.0, 1.0),
        (0.00, 0.27, 0.20, 0.06, 0.0, 0.8),
    ),
    "PSAX": ((0.06, 0.55, 0.21, 0.21, 0.0, 1.0), (-0.28, 0.52, 0.10, 0.25, 0.2, 1.0)),
    "A2C": ((0.02, 0.40, 0.17, 0.28, 0.0, 1.0), (0.02, 0.80, 0.17, 0.13, 0.0, 1.0)),
    "A3C": _A3C,
    "A4C": (
        (0.18, 0.42, 0.14, 0.26, 0.0, 1.0),
        (-0.19, 0.44, 0.13, 0.23, 0.0, 1.0),
        (0.18, 0.81, 0.15, 0.11, 0.0, 1.0),
        (-0.20, 0.81, 0.15, 0.11, 0.0, 1.0),
    ),
    "A5C": (*_A3C, (-0.25, 0.78, 0.12, 0.10, 0.0, 0.6)),
}
VIEWS = tuple(_CHAMBERS)
_NO_CHAMBER = (0.0, 0.0, 1.0, 1.0, 0.0, 0.0)


def cardiac_annotators() -> NDArray[np.float64]:
    """Return the matrices of six experts, then of two non-experts, shape (8, 6, 6).

    Experts are correct in 94 to 86 % outside A3C and A5C, call A5C A3C three times as often as the
    reverse, and otherwise err within parasternal or apical views. Non-experts tend to call any
    apical view A4C and PSAX PLAX, or guess.
    """
    correct = (0.94, 0.93, 0.92, 0.90, 0.88, 0.86)
    confused = (0.20, 0.28, 0.34, 0.40, 0.46, 0.52)
    bias, uniform = np.eye(6)[[0, 0, 4, 4, 4, 4]], np.full((6, 6), 1 / 6)
    student = 0.4 * np.eye(6) + 0.4 * bias + 0.2 * uniform
    novice = 0.1 * np.eye(6) + 0.55 * bias + 0.35 * uniform
    return np.stack([*map(_expert, correct, confused), student, novice])


def _expert(correct: float, confused: float) -> NDArray[np.float64]:
    matrix = np.zeros((6, 6))
    for group in ([0, 1], [2, 3, 4, 5]):
        for view in group:
            matrix[view, group] = (1 - correct) / (len(group) - 1)
            matrix[view, view] = correct
    for view, other, share in ((3, 5, confused / 3), (5, 3, confused)):
        matrix[view, view] += matrix[view, other] - share
        matrix[view, other] = share
    return matrix


def cardiac_views(n_items: int, random_state: int = 0) -> LabelledSet:
    """Return images, uint8 of shape (n_items, 96, 96), of views drawn uniformly."""
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, len(VIEWS), n_items).astype(np.int32)
    parts = [draw_views(y[start : start + _CHUNK], rng) for start in range(0, n_items, _CHUNK)]
    return LabelledSet(np.concatenate(parts), y, as_names(VIEWS))


def draw_views(y: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw one image per class in `y`: tissue with chambers, speckle, a sector of a circle."""
    shape = (len(y), 1, 1)
    down, across = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    across, down = (across - SIZE / 2) / (0.72 * SIZE), down / SIZE
    heart = _move(across, down, rng, shape)
    image = 0.55 + 0.25 * _noise(len(y), 10, rng)
    for place in range(max(map(len, _CHAMBERS.values()))):
        inside, wall = _chamber(y, place, *heart, rng)
        image = image * (1 - 0.85 * inside) + 0.35 * wall
    attenuation = rng.uniform(0.2, 1.2, shape).astype(np.float32)
    # The modulus of a complex Gaussian field, as of coherent waves.
    speckle = np.hypot(_noise(len(y), 0.8, rng), _noise(len(y), 0.8, rng))
    image = image.clip(0.02) * np.exp(-attenuation * down) * (speckle / speckle.mean())
    gain = rng.uniform(0.7, 1.3, shape).astype(np.float32)
    bright = np.log1p(6 * gain * image) / np.log1p(9)
    seen = (np.abs(np.arctan2(across, down)) < 0.72) & (np.hypot(across, down) < 1)
    pixels: NDArray[np.uint8] = (255 * (bright * seen).clip(0, 1)).astype(np.uint8)
    return pixels


def _move(
    across: NDArray[Any], down: NDArray[Any], rng: np.random.Generator, shape: tuple[int, ...]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rotate, scale and shift the heart a little: two arrays (n_items, SIZE, SIZE)."""
    turn = rng.normal(0, 0.12, shape).astype(np.float32)
    scale = rng.normal(1, 0.08, shape).astype(np.float32)
    shift = rng.normal(0, 0.04, (2, *shape)).astype(np.float32)
    u, v = (across - shift[0]) / scale, (down - 0.55 - shift[1]) / scale
    return np.cos(turn) * u + np.sin(turn) * v, np.cos(turn) * v - np.sin(turn) * u + 0.55


def _chamber(
    y: NDArray[np.int32],
    place: int,
    across: NDArray[Any],
    down: NDArray[Any],
    rng: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return how far each pixel is inside one chamber of its view, and inside its wall."""
    listed = [(*chambers, *[_NO_CHAMBER] * 5)[place] for chambers in _CHAMBERS.values()]
    table = np.array(listed, np.float32)[y]
    table[:, :2] += rng.normal(0, 0.015, (len(y), 2))
    table[:, 2:4] *= rng.normal(1, 0.1, (len(y), 2)).clip(0.7, 1.3)
    table[:, 5] *= rng.uniform(0.6, 1.0, len(y))
    u0, v0, width, height, turn, depth = (column[:, None, None] for column in table.T)
    u, v = across - u0, down - v0
    along, beside = np.cos(turn) * u + np.sin(turn) * v, np.cos(turn) * v - np.sin(turn) * u
    distance = np.hypot(along / width, beside / height).clip(max=6)
    inside = depth / (1 + np.exp(12 * (distance - 1)))
    return inside, depth * np.exp(-(((distance - 1.12) / 0.1) ** 2))


def _noise(n_items: int, width: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return blurred noise with a standard deviation of 1."""
    field = rng.standard_normal((n_items, SIZE, SIZE), np.float32)
    smooth: NDArray[np.float32] = gaussian_filter(field, (0, width, width), truncate=2.5)
    smooth /= smooth.std()
    return smooth


def load(data_dir: Path | None) -> Split:
    """Draw the views; no files are needed."""
    return cardiac_views(12_000, random_state=0), cardiac_views(3_000, random_state=1)


def runs(options: Options) -> list[dict[str, Any]]:
    """List the methods of the paper's table."""
    group = {"crowd": "cardiac", "skill": None, "density": LABELS_PER_IMAGE}
    return [
        {"method": method, **group, "seed": seed}
        for seed in range(options.seeds or SEEDS)
        for method in METHODS
    ]


def perform(run: Run, data: Split, device: torch.device) -> Result:
    """Train and score with the experts and non-experts as annotators."""
    return simulated.perform(run, data, device, cardiac_annotators())


def draw(results: list[Result], folder: Path) -> list[Path]:
    """Draw views, skills and matrices, and write the table beside the paper's."""
    some = cardiac_views(60, random_state=2)
    views = [(name, some.X[np.argmax(some.y == k)]) for k, name in enumerate(VIEWS)]
    written = figures.draw_images(views, folder / "figure-7a")
    if ours := [r for r in results if r["method"] == "trace"]:
        true, estimated = (np.array(ours[0][name]) for name in ("true_skills", "skills"))
        written += figures.draw_skills(NAMES, true, estimated, folder / "figure-7b")
        order, confusion = np.argsort(-true), np.array(ours[0]["confusion"])
        shown = [*order[:2], *order[-2:]]
        truth = [(NAMES[k], cardiac_annotators()[k]) for k in shown]
        estimates = [("estimated", confusion[k]) for k in shown]
        written += figures.draw_matrices([truth, estimates], folder / "figure-7c", VIEWS)
    table = tables.beside_published(results, METHODS, LABELS_PER_IMAGE, PUBLISHED)
    parts = [NOTE, table, *([_ranking(results)] if ours else [])]
    page, title = folder / "cardiac.md", "Cardiac views, simulated (figure 7)"
    return [*written, tables.write_page(page, title, results, parts)]


def _ranking(results: list[Result]) -> str:
    """Return how well each method that estimates skills ranks the annotators."""
    lines = []
    for method in METHODS:
        if own := [r for r in results if r["method"] == method and "skills" in r]:
            lowest = min(np.corrcoef(r["skills"], r["true_skills"])[0, 1] for r in own)
            last = sum(set(np.argsort(r["skills"])[:2]) == NON_EXPERTS for r in own)
            lines.append(
                f"- {method}: the correlation of estimated and true skills is at least "
                f"{np.floor(1000 * lowest) / 1000:.3f}; both non-experts rank last in {last} of "
                f"{len(own)} runs."
            )
    return "\n".join(lines)


EXPERIMENTS = (
    Experiment(
        "cardiac", "cardiac (simulated)", "cardiac", load, runs, perform, draw, keep=("confusion",)
    ),
)
