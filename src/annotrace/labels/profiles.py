"""Profiles: the columns of a table as their content shows them, apart from their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from annotrace.labels.association import (
    Association,
    Floats,
    associate,
    intraclass_correlation,
)
from annotrace.labels.sheets import Sheet
from annotrace.labels.value_kinds import NUMBERS, Kind, as_number, is_row_number, kind_of
from annotrace.labels.vocabulary import Coded, as_text

# A column that is empty in more rows holds remarks rather than names or labels.
_MIN_FILLED = 0.5
# Rows that repeat a value, for a column to have groups of rows at all.
_MIN_REPEATS = 20
# The mean number of rows of a class, and the largest number of classes.
_MIN_ROWS_PER_CLASS, _MAX_CLASSES = 2, 500
# Of the distinct values, so many show whether they have blanks.
_MAX_VALUES = 1000
# Of columns that determine each other, the one of the first kind has the role.
_PREFERENCE = (Kind.FILE, Kind.NAME, Kind.WHOLE, Kind.EMAIL, Kind.UUID, Kind.URL, Kind.TEXT)


@dataclass(frozen=True, eq=False)
class Profile:
    """One column by content."""

    name: Any
    coded: Coded

    @cached_property
    def kind(self) -> Kind:
        """The kind of its values."""
        return kind_of(self.coded.names)

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return len(self.coded.names)

    @cached_property
    def n_filled(self) -> int:
        """Number of cells that are not empty."""
        return int(np.count_nonzero(self.coded.codes >= 0))

    @property
    def is_filled(self) -> bool:
        """Whether at least half of the cells are filled, and not with dates."""
        is_filled = self.n_filled >= _MIN_FILLED * max(len(self.coded.codes), 1)
        return is_filled and self.kind is not Kind.DATE

    @property
    def is_repeated(self) -> bool:
        """Whether enough rows have a value that another row has too."""
        return self.n_filled - self.n_distinct >= _MIN_REPEATS

    @property
    def may_be_item(self) -> bool:
        """Whether values may name items."""
        return self.kind not in (Kind.SCORE, Kind.EMAIL, Kind.LIST)

    @property
    def may_be_annotator(self) -> bool:
        """Whether values may name annotators."""
        kinds = (Kind.SCORE, Kind.URL, Kind.FILE, Kind.TEXT, Kind.LIST)
        return self.n_distinct < self.n_filled and self.kind not in kinds

    @property
    def may_be_label(self) -> bool:
        """Whether values may be classes: few, repeated, and not in one block of rows each."""
        return (
            self.kind not in (Kind.SCORE, Kind.URL, Kind.FILE, Kind.EMAIL, Kind.UUID, Kind.LIST)
            and self.n_distinct <= _MAX_CLASSES
            and self.n_filled >= _MIN_ROWS_PER_CLASS * self.n_distinct
            and not self.is_in_blocks
        )

    @cached_property
    def is_in_blocks(self) -> bool:
        """Whether rows of equal values follow each other, as those of batches and days do."""
        codes = self.coded.codes[self.coded.codes >= 0]
        n_blocks = np.count_nonzero(np.diff(codes)) + 1
        return self.n_distinct > 2 and n_blocks == self.n_distinct

    @cached_property
    def is_row_number(self) -> bool:
        """Whether values number the rows, name them at random, or are measurements."""
        if self.kind is Kind.WHOLE:
            return is_row_number(self.coded.names)
        return self.kind in (Kind.UUID, Kind.SCORE)

    @cached_property
    def numbers(self) -> Floats | None:
        """The numbers in the rows, NaN where empty; None if values are not numbers."""
        if self.kind not in NUMBERS:
            return None
        values = [as_number(text) for text in as_text(self.coded.names).tolist()]
        return np.append(values, np.nan)[self.coded.codes]

    @cached_property
    def has_blanks(self) -> bool:
        """Whether some of the values are several words."""
        return any(" " in text.strip() for text in as_text(self.coded.names[:_MAX_VALUES]).tolist())


class Profiles:
    """The filled columns of a table, and how they depend on each other.

    Parameters
    ----------
    sheet : Sheet
    columns : sequence of column names
    known : collection of column names
        Those whose role is known, which are kept whatever they hold.
    """

    def __init__(self, sheet: Sheet, columns: Sequence[Any], known: Collection[Any] = ()) -> None:
        every = [Profile(name, sheet.column(name)) for name in columns]
        filled = [part for part in every if part.is_filled or part.name in known]
        self._pairs: dict[tuple[Any, Any], Association] = {}
        varying = [part for part in filled if part.n_distinct > 1 or part.name in known]
        others = [part for part in filled if part not in varying]
        self.constant = [part for part in others if part.may_be_annotator]
        self._equals = self._group_equals(varying, known)
        self.columns = [equals[0] for equals in self._equals]

    def pair(self, group: Profile, value: Profile) -> Association:
        """Return how the values of a column depend on the groups of another."""
        key = (group.name, value.name)
        if key not in self._pairs:
            self._pairs[key] = associate(group.coded.codes, value.coded.codes)
        return self._pairs[key]

    def correlation(self, group: Profile, value: Profile) -> float:
        """Return the intraclass correlation of numbers within groups; 0 for other values."""
        if value.numbers is None:
            return 0.0
        return intraclass_correlation(group.coded.codes, value.numbers)

    def named_best(self, column: Profile, role: str) -> Profile:
        """Return the column that names a role best, of those that one determines and vice versa.

        Names of items and annotators have no blanks, and those of classes are words.
        """
        return min(
            self.equals(column),
            key=lambda part: (role != "label" and part.has_blanks, _rank(part)),
        )

    def equals(self, column: Profile) -> list[Profile]:
        """Return a column of `columns` and those that determine it and vice versa."""
        return next(equals for equals in self._equals if equals[0] is column)

    def _group_equals(self, columns: list[Profile], known: Collection[Any]) -> list[list[Profile]]:
        """Group columns that determine each other; a known one is alone."""
        groups: list[list[Profile]] = []
        for column in sorted(columns, key=lambda part: (part.name not in known, _rank(part))):
            equal = (group for group in groups if self._are_equal(column, group[0]))
            group = None if column.name in known else next(equal, None)
            if group is None:
                groups.append([column])
            elif group[0].name not in known:
                group.append(column)
        return groups

    def _are_equal(self, column: Profile, other: Profile) -> bool:
        if column.n_distinct != other.n_distinct or not column.is_repeated:
            return False
        pair = self.pair(other, column)
        return pair.group_determines_value and pair.value_determines_group


def _rank(column: Profile) -> int:
    return [*_PREFERENCE, *Kind].index(column.kind)
