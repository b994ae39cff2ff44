"""Which columns of a wide table are annotators: those whose values are shared with others.

A wide table has one column of answers per annotator. Other columns, such as a text, a date or an
address, have values of their own and are set aside. An annotator may use some of the classes only,
label a single item, or misspell a class. A column that shares some values with the others but not
most, or that has the values of the others and agrees with nobody, may be either: this is a problem
that the caller solves by naming the annotators.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import first_few
from annotrace.labels.association import Floats
from annotrace.labels.value_kinds import is_never_label, is_whole_number
from annotrace.labels.vocabulary import Coded, as_text, merge_vocabularies

Mask: TypeAlias = NDArray[np.bool_]

# With fewer rows, annotators may have used different classes by chance.
_MIN_ROWS = 5
# With fewer cells, a column is too short to be judged by how often its values are repeated.
_MIN_CELLS = 10
# The mean number of cells with the same class.
_MIN_CELLS_PER_CLASS = 3
# The share of cells with a value that another annotator uses too, or the number of own values.
_MIN_SHARED, _MAX_OWN = 0.8, 2
# Nearly all distinct values of a column with dates, urls and the like are such.
_NEARLY_ALL = 0.95
# Classes that attributes of items have as well, besides numbers.
_YES_NO = frozenset(
    [
        *("y", "n", "yes", "no", "true", "false", "ja", "nein", "wahr", "falsch"),
        *("oui", "non", "vrai", "faux", "si", "sí", "verdadero", "falso"),
    ]
)
# Pairs of answers that show whether someone agrees with others, and how much these agree.
_MIN_PAIRS, _MIN_AGREEMENT = 50, 0.1


class Answers(NamedTuple):
    """The columns of a wide table that are annotators, and those that are not.

    `repeated` are those set aside whose values are repeated, as names of annotators and labels are
    in a long table. `problem` describes what is unclear, None if nothing is.
    """

    columns: tuple[Any, ...]
    set_aside: tuple[Any, ...] = ()
    repeated: tuple[Any, ...] = ()
    problem: str | None = None


def find_answers(columns: Mapping[Any, Coded], *, is_wide: bool) -> Answers:
    """Find the annotators among the columns of a wide table.

    Parameters
    ----------
    columns : mapping from name to column
        Without item and truth.
    is_wide : bool
        Whether the caller says that the table is wide: then columns of very few rows need not share
        a value.
    """
    if len(columns) < 2:
        return Answers(tuple(columns))
    cells = _Cells(columns)
    groups = cells.groups()
    if not groups and is_wide and cells.n_rows < _MIN_ROWS:
        groups = [cells.is_candidate]
    answers = groups[0] if groups else np.zeros(len(columns), bool)
    names = list(columns)
    problem = _find_problem(cells, groups, answers, names)
    answers = answers | ((cells.n_filled == 0) & _are_named_alike(names, answers))
    return Answers(
        _select(names, answers),
        _select(names, ~answers),
        _select(names, ~answers & cells.is_repeated),
        problem,
    )


class _Cells:
    """The filled cells of columns by column and value, shape (n_pairs,), with common codes."""

    def __init__(self, columns: Mapping[Any, Coded]) -> None:
        codes, names = merge_vocabularies(list(columns.values()))
        self.texts = as_text(names).tolist()
        self.n_rows, self.n_columns = len(codes[0]), len(codes)
        filled = [np.flatnonzero(part >= 0) for part in codes]
        self.row = np.concatenate(filled)
        self.column = np.repeat(np.arange(len(codes)), [len(part) for part in filled])
        self.code = np.concatenate([part[rows] for part, rows in zip(codes, filled, strict=True)])
        n_values = max(len(self.texts), 1)
        pair, self.count = np.unique(self.column * n_values + self.code, return_counts=True)
        self.pair_column, self.pair_value = np.divmod(pair, n_values)

    def _sum(self, values: NDArray[Any]) -> Floats:
        """Sum what is known of pairs over each column, shape (n_columns,)."""
        return np.bincount(self.pair_column, values, self.n_columns).astype(np.float64)

    @cached_property
    def n_filled(self) -> Floats:
        return self._sum(self.count)

    @cached_property
    def n_distinct(self) -> Floats:
        return self._sum(np.ones(len(self.count)))

    @cached_property
    def is_candidate(self) -> Mask:
        """Whether a column has values, and they are not dates, urls or the like."""
        never = np.array([is_never_label(text) for text in self.texts], dtype=float)
        share = self._sum(never[self.pair_value]) / np.maximum(self.n_distinct, 1)
        return (self.n_filled > 0) & (share < _NEARLY_ALL)

    @cached_property
    def is_repeated(self) -> Mask:
        """Whether a candidate is filled in most rows with values that are repeated."""
        is_filled = self.n_filled >= max(self.n_rows / 2, _MIN_CELLS)
        return self.is_candidate & is_filled & (self.n_distinct > 1) & ~self._is_distinct

    @cached_property
    def _is_distinct(self) -> Mask:
        """Whether more than half of the cells of a column differ."""
        return (self.n_filled >= _MIN_CELLS) & (self.n_distinct > self.n_filled / 2)

    def shared(self, chosen: Mask) -> tuple[Floats, Floats]:
        """Return the share of cells, and the number of values that no other chosen column has."""
        is_chosen = chosen[self.pair_column]
        n_users = np.bincount(self.pair_value[is_chosen], minlength=len(self.texts))
        is_shared = n_users[self.pair_value] - is_chosen > 0
        share = self._sum(self.count * is_shared) / np.maximum(self.n_filled, 1)
        return share, self._sum(~is_shared)

    def groups(self) -> list[Mask]:
        """Return the sets of columns that share values with each other, the largest first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        share, _ = self.shared(self.is_candidate)
        chosen = self.is_candidate & (share > 0) & ~(self._is_distinct & (share < _MIN_SHARED))
        used = chosen[self.pair_column]
        links = coo_array(
            (np.ones(used.sum()), (self.pair_column[used], self.pair_value[used] + self.n_columns)),
            shape=(self.n_columns + len(self.texts),) * 2,
        )
        _, component = connected_components(links, directed=False)
        component = component[: self.n_columns]
        masks = [chosen & (component == k) for k in np.unique(component[chosen])]
        groups = [mask for mask in masks if mask.sum() > 1 and self._has_classes(mask)]
        if groups and np.all(self.n_filled[self.is_candidate] < _MIN_CELLS):
            # Annotators of few labels each need not use the same classes.
            return [np.any(groups, axis=0)]
        return sorted(groups, key=lambda mask: -int(mask.sum()))

    def _has_classes(self, chosen: Mask) -> bool:
        """Whether the values of columns are repeated as classes are."""
        n_cells = self.n_filled[chosen].sum()
        n_values = len(np.unique(self.pair_value[chosen[self.pair_column]]))
        return bool(n_cells < _MIN_CELLS or n_cells >= _MIN_CELLS_PER_CLASS * n_values)

    def are_codes(self, chosen: Mask) -> bool:
        """Whether all values of columns are numbers or yes and no."""
        values = np.unique(self.pair_value[chosen[self.pair_column]])
        texts = [self.texts[value] for value in values]
        return all(is_whole_number(text) or text.casefold() in _YES_NO for text in texts)

    def agreement(self, chosen: Mask) -> tuple[Floats, Floats]:
        """Return the chance-corrected agreement of each column with the other chosen ones.

        Returns
        -------
        value, error : ndarray of shape (n_columns,)
            Infinite errors if there are few pairs of answers.
        """
        used = chosen[self.column]
        row, column, code = self.row[used], self.column[used], self.code[used]
        cell = row * max(len(self.texts), 1) + code
        _, inverse, counts = np.unique(cell, return_inverse=True, return_counts=True)
        n_equal = counts[inverse] - 1.0
        n_others = np.bincount(row, minlength=self.n_rows)[row] - 1.0
        chance = np.bincount(code, minlength=len(self.texts))[code] / max(len(code), 1)
        excess = np.bincount(column, n_equal - n_others * chance, self.n_columns)
        squares = np.bincount(column, (n_equal - n_others * chance) ** 2, self.n_columns)
        pairs = np.bincount(column, n_others, self.n_columns)
        scale = np.maximum(np.bincount(column, n_others * (1 - chance), self.n_columns), 1)
        error = np.where(pairs >= _MIN_PAIRS, np.sqrt(squares) / scale, np.inf)
        return excess / scale, error


def _find_problem(cells: _Cells, groups: list[Mask], answers: Mask, names: list[Any]) -> str | None:
    """Describe why it is unclear which columns are annotators; None if it is clear."""
    if not answers.any():
        return "no two columns share a value that is repeated, as annotators share classes"
    if len(groups) > 1:
        first, second = (first_few(_select(names, mask)) for mask in groups[:2])
        return f"{first} share values, and so do {second}"
    share, n_own = cells.shared(answers)
    is_short = cells.n_filled < _MIN_CELLS
    few_own = (n_own <= _MAX_OWN) & (is_short | (not cells.are_codes(answers)))
    unclear = _select(names, answers & (share < _MIN_SHARED) & ~few_own)
    if unclear:
        return f"only some of the values of {first_few(unclear)} are shared with other columns"
    return _find_random(cells, answers, names)


def _find_random(cells: _Cells, answers: Mask, names: list[Any]) -> str | None:
    """Describe which column has the codes of the others and agrees with nobody, if there is."""
    if not cells.are_codes(answers) or answers.sum() < 3:
        return None
    value, error = cells.agreement(answers)
    is_random = answers & np.isfinite(error) & (abs(value) < 2 * error)
    others = answers & ~is_random
    if others.sum() < 2 or np.mean(cells.agreement(others)[0][others]) < _MIN_AGREEMENT:
        return None
    unclear = _select(names, is_random & ~_are_named_alike(names, answers))
    if not unclear:
        return None
    return f"{unclear[0]!r} has the values of the other columns, but agrees with none"


def _are_named_alike(names: Sequence[Any], answers: Mask) -> Mask:
    """Whether each name has the letters of most names of answers, as w1, w2 and w3 have."""
    letters = [re.sub(r"\d+", "", str(name)) for name in names]
    usual, count = next(iter(Counter(_select(letters, answers)).most_common(1)), ("", 0))
    is_usual = count > answers.sum() / 2
    return np.array([is_usual and name == usual for name in letters], dtype=bool)


def _select(names: Sequence[Any], chosen: Mask) -> tuple[Any, ...]:
    return tuple(compress(names, chosen))
