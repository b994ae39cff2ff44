"""The bars of `auto` over the variants of six crowds.

1. First in mean rank and in mean accuracy of the classifier among all methods at their defaults.
2. At most half a point below the best method with the recipe in the mean.
3. On no variant but the worst ones more than one point plus two standard errors below `vanilla`.
4. With one label per item (rand-1) above `vanilla` in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from variants_methods import RECIPE
from variants_rows import Cell, unpack
from variants_summary import AUTO, Runs, describe_missing, groups, mean_ranks

VANILLA = "vanilla"
WORST, ONE_LABEL = "worst", "rand-1"
RECIPE_SHORTFALL = 0.005
SHORTFALL, ERRORS = 0.01, 2
"""Largest shortfall against `vanilla` on a variant: an accuracy plus paired standard errors."""


def missed_bars(runs: Runs, defaults: Sequence[str]) -> list[str]:
    """Return in words what `auto` misses, and which runs are missing or failed.

    Parameters
    ----------
    runs : Runs
        Whose cells are all those that count.
    defaults : sequence of str
        The methods at their defaults to compare with; others are used only with the recipe.
    """
    expected = dict.fromkeys([AUTO, VANILLA, *defaults])
    absent = [f"{method} on all sets" for method in expected if method not in runs.methods]
    compared = runs.only([*expected, *(m for m in runs.methods if is_with_recipe(m))])
    notes = [f"Missing: {each}." for each in [*absent, *describe_missing(compared)]]
    notes += [
        f"Failed: {each['method']} on {each['set']} {each['variant']}, seed {each['seed']}."
        for each in compared.failed()
    ]
    if not any(is_with_recipe(method) for method in runs.methods):
        notes.append("Missing: any method with the recipe.")
    return [
        *notes,
        *_missed_rank(compared.only(expected)),
        *_missed_means(compared),
        *_missed_shortfalls(compared),
        *_missed_one_label(compared),
    ]


def is_with_recipe(method: str) -> bool:
    """Whether a specification asks for the recipe."""
    return method.partition(":")[0].endswith(RECIPE)


def _missed_rank(runs: Runs) -> list[str]:
    ranks = mean_ranks(runs)
    if AUTO not in ranks:
        return ["Mean rank: unknown, because auto lacks runs."]
    best = min(ranks, key=ranks.__getitem__)
    if ranks[best] >= ranks[AUTO]:
        return []
    return [f"Mean rank: {ranks[AUTO]:.2f}, but {best} has {ranks[best]:.2f}."]


def _missed_means(runs: Runs) -> list[str]:
    """Compare with every other method, each on the runs that both have."""
    missed = []
    for method in runs.methods:
        both = [cell for cell in runs.done(method) if runs.row(cell, AUTO) is not None]
        theirs, ours = runs.mean(method, both), runs.mean(AUTO, both)
        allowed = RECIPE_SHORTFALL if is_with_recipe(method) else 0.0
        if theirs is not None and ours is not None and round(theirs - ours, 6) > allowed:
            missed.append(
                f"Mean accuracy: {ours:.4f}, but {method} has {theirs:.4f} ({len(both)} runs)."
            )
    return missed


def _missed_shortfalls(runs: Runs) -> list[str]:
    missed = []
    for (name, variant), cells in groups(runs.cells).items():
        found = None if variant.startswith(WORST) else compare(runs, cells, AUTO, VANILLA)
        if found is not None and -found[0] > SHORTFALL + ERRORS * found[1]:
            missed.append(
                f"{name} {variant}: {-100 * found[0]:.1f} points below {VANILLA}, with a paired "
                f"standard error of {100 * found[1]:.1f}."
            )
    return missed


def _missed_one_label(runs: Runs) -> list[str]:
    cells = [cell for cell in runs.cells if cell.variant == ONE_LABEL]
    ours, theirs = (runs.mean(method, cells) for method in (AUTO, VANILLA))
    if ours is None or theirs is None:
        return ["One label per item: unknown, because runs are missing."]
    if ours > theirs:
        return []
    return [f"One label per item: {ours:.4f}, but {VANILLA} has {theirs:.4f}."]


def compare(
    runs: Runs, cells: Sequence[Cell], method: str, other: str
) -> tuple[float, float] | None:
    """Return the mean difference in accuracy of two methods over seeds, and its standard error.

    None if a run of either is missing.
    """
    parts, differences = [], []
    for cell in cells:
        rows = runs.row(cell, method), runs.row(cell, other)
        if rows[0] is None or rows[1] is None:
            return None
        ours, theirs = (unpack(row["correct"], row["n_test"]).astype(float) for row in rows)
        parts.append(rows[0]["test_part"])
        differences.append(ours - theirs)
    if not differences:
        return None
    mean = float(np.mean([each.mean() for each in differences]))
    return mean, paired_standard_error(parts, differences)


def paired_standard_error(parts: Sequence[str], differences: Sequence[NDArray]) -> float:
    """Return the standard error of the mean of differences over test items and seeds.

    The variance has two parts: that of test items, after averaging the seeds that share them, and
    that of seeds, as far as their means differ by more than the noise of single predictions.

    Parameters
    ----------
    parts : sequence of str, one per seed
        Seeds with the same part have the same test items.
    differences : sequence of ndarray of shape (n_test,), one per seed
    """
    items, noise = 0.0, []
    for part in dict.fromkeys(parts):
        own = np.stack([d for p, d in zip(parts, differences, strict=True) if p == part])
        n_seeds, n_test = own.shape
        items += own.mean(axis=0).var(ddof=1) / n_test * (n_seeds / len(parts)) ** 2
        noise += [_noise(own) / n_test] * n_seeds
    if len(parts) == 1:
        return float(np.sqrt(items))
    means = np.array([each.mean() for each in differences])
    seeds = max(0.0, float(means.var(ddof=1) - np.mean(noise))) / len(parts)
    return float(np.sqrt(items + seeds))


def _noise(differences: NDArray) -> float:
    """Return the variance over items of a seed's differences, less that which seeds share."""
    rest = differences - differences.mean(axis=1, keepdims=True)
    n_seeds, n_test = differences.shape
    if n_seeds == 1:
        return float(np.square(rest).sum() / (n_test - 1))
    rest = rest - rest.mean(axis=0)
    return float(np.square(rest).sum() / ((n_seeds - 1) * (n_test - 1)))
