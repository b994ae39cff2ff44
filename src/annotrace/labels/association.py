"""How the values of one column depend on the groups of rows that another column makes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.labels.vocabulary import Codes

Floats: TypeAlias = NDArray[np.float64]

# Counting cells takes less time than sorting them if there are not many more cells than rows.
_MAX_CELLS_PER_ROW = 4


class Agreement(NamedTuple):
    """A chance-corrected agreement and its standard error."""

    value: float
    error: float

    @property
    def high(self) -> float:
        """Two standard errors above the value."""
        return self.value + 2 * self.error


class Association(NamedTuple):
    """How values depend on groups, over the rows in which both columns are filled.

    Attributes
    ----------
    group_determines_value, value_determines_group : bool
        Whether every group has one value, and whether every value occurs in one group.
    equal_pairs, expected_equal_pairs : float
        The number of pairs of rows with the same group and value, and what it would be if values
        did not depend on groups.
    agreement : Agreement
        How often rows of a group have the same value: 1 always, 0 as often as by chance.
    has_equal_groups : bool
        Whether all groups have the same number of rows.
    chance : float
        The probability that two random rows have the same value.
    """

    group_determines_value: bool
    value_determines_group: bool
    equal_pairs: float
    expected_equal_pairs: float
    agreement: Agreement
    has_equal_groups: bool
    chance: float


def associate(group: Codes, value: Codes) -> Association:
    """Return how values depend on groups.

    Parameters
    ----------
    group, value : ndarray of shape (n_rows,), int32
        Codes; -1 is empty.
    """
    filled = (group >= 0) & (value >= 0)
    cell_group, cell_value, counts = _count_cells(group[filled], value[filled])
    group_sizes = np.bincount(cell_group, counts).astype(np.float64)
    value_sizes = np.bincount(cell_value, counts)
    chance = float(np.sum((value_sizes / max(value_sizes.sum(), 1)) ** 2))
    equal = np.bincount(cell_group, counts * (counts - 1) / 2, len(group_sizes))
    pairs = group_sizes * (group_sizes - 1) / 2
    used = group_sizes[group_sizes > 0]
    return Association(
        len(counts) == len(used),
        len(counts) == np.count_nonzero(value_sizes),
        float(equal.sum()),
        float(pairs.sum()) * chance,
        _agreement(group_sizes, equal / np.maximum(pairs, 1), chance),
        len(used) > 0 and bool(np.ptp(used) == 0),
        chance,
    )


def _count_cells(group: Codes, value: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the group, the value and the number of rows of each cell that occurs."""
    n_values = int(value.max(initial=0)) + 1
    n_cells = (int(group.max(initial=0)) + 1) * n_values
    cell = group.astype(np.int64) * n_values + value
    if n_cells <= _MAX_CELLS_PER_ROW * len(cell):
        every = np.bincount(cell)
        cell = np.flatnonzero(every)
        counts = every[cell]
    else:
        cell, counts = np.unique(cell, return_counts=True)
    of_group, of_value = np.divmod(cell, n_values)
    return of_group, of_value, counts.astype(np.float64)


def _agreement(sizes: Floats, share: Floats, chance: float) -> Agreement:
    """Return the agreement from the share of equal pairs in each group.

    Groups count by their number of rows less one. The standard error treats groups as drawn
    independently, so that one large group alone is no evidence.
    """
    weight = np.maximum(sizes - 1, 0)
    scale = float(weight.sum()) * (1 - chance)
    if scale <= 0:
        return Agreement(0.0, 1.0)
    excess = weight * (share - chance)
    return Agreement(float(excess.sum()) / scale, float(np.sqrt(np.sum(excess**2))) / scale)


def intraclass_correlation(group: Codes, numbers: Floats) -> float:
    """Return the share of the variance of ranks that lies between groups; numbers may be NaN."""
    filled = (group >= 0) & np.isfinite(numbers)
    group, ranks = group[filled], _ranks(numbers[filled])
    size = np.bincount(group)
    n_free = len(group) - np.count_nonzero(size)
    total = ranks.var() if len(ranks) else 0.0
    if n_free == 0 or total == 0:
        return 0.0
    mean = np.bincount(group, ranks) / np.maximum(size, 1)
    return float(1 - np.sum((ranks - mean[group]) ** 2) / n_free / total)


def _ranks(numbers: Floats) -> Floats:
    """Return the mean rank of each number among all."""
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
