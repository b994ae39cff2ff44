"""Evidence in the content of columns for the roles of item, annotator and label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from annotrace.labels.profiles import Profile, Profiles
from annotrace.labels.value_kinds import Kind
from annotrace.labels.vocabulary import as_text

# Pairs of equal annotators within items: how many chance must predict, and the share that may be.
_MIN_EXPECTED, _MAX_REPEATED = 7.0, 0.3
# Of a column that is not the annotator, at least this share of what chance predicts.
_MIN_REPEATED = 0.5
# Agreement within items, the lower one if it is known which column is the item.
_MIN_AGREEMENT, _MIN_LABEL_AGREEMENT, _MIN_STANDARD_ERRORS = 0.2, 0.1, 4.0
# How many times more labels depend on items than on annotators. Over 24 real crowds, annotators'
# habits alone never exceeded 1.6 times the agreement on items with that many standard errors.
_MIN_RATIO = 3.0
# Numbers of more distinct values may be measurements.
MAX_GRADES = 12
# The mean number of rows of a class.
_MIN_ROWS_PER_CLASS = 5


class Reading(NamedTuple):
    """The columns of the three roles."""

    item: Profile
    annotator: Profile
    label: Profile


class Evidence:
    """What the content of columns says for and against readings of a table.

    Parameters
    ----------
    profiles : Profiles
    known : mapping from role to column name
        The roles whose columns are known.
    """

    def __init__(self, profiles: Profiles, known: Mapping[str, Any]) -> None:
        self.profiles, self.known = profiles, known

    def label_once(self, item: Profile, annotator: Profile) -> bool:
        """Whether annotators label an item once: they differ within it more often than by chance.

        True if both are known.
        """
        if {"item", "annotator"} <= set(self.known):
            return True
        if not item.is_repeated or not self._may_be_crossed(item, annotator):
            return False
        pair = self.profiles.pair(item, annotator)
        return (
            pair.expected_equal_pairs >= _MIN_EXPECTED
            and pair.equal_pairs <= _MAX_REPEATED * pair.expected_equal_pairs
            and not (is_counter(item, annotator) and not pair.has_equal_groups)
        )

    def may_label_once(self, item: Profile, annotator: Profile) -> bool:
        """Whether annotators may label an item once, as far as rows repeat items and annotators."""
        if {"item", "annotator"} <= set(self.known) or annotator.n_distinct < 2:
            return True
        if not item.is_repeated:
            return True
        if not self._may_be_crossed(item, annotator):
            return False
        pair = self.profiles.pair(item, annotator)
        return pair.equal_pairs < max(2, _MIN_REPEATED * pair.expected_equal_pairs)

    def _may_be_crossed(self, item: Profile, annotator: Profile) -> bool:
        """Whether two columns have pairs of values enough for the rows, and neither follows."""
        if item.n_filled > 2 * item.n_distinct * annotator.n_distinct:
            return False
        pair = self.profiles.pair(item, annotator)
        return not pair.group_determines_value and not pair.value_determines_group

    def is_attribute(self, group: Profile, column: Profile) -> bool:
        """Whether a column describes what another one names: it is the same in all its rows."""
        return group.is_repeated and self.profiles.pair(group, column).group_determines_value

    def supports(self, reading: Reading) -> bool:
        """Whether annotators agree on items, of which each labels one once."""
        item, annotator, label = reading
        if not item.is_repeated:
            return False
        if "label" not in self.known and not self._varies(reading):
            return False
        if {"item", "label"} <= set(self.known):
            return True
        within_items = self.profiles.pair(item, label).agreement
        if within_items.value < _MIN_STANDARD_ERRORS * within_items.error:
            return False
        if self._is_oriented(reading):
            return "label" in self.known or within_items.value >= _MIN_LABEL_AGREEMENT
        within_annotators = self.profiles.pair(annotator, label).agreement
        return (
            item.n_distinct > annotator.n_distinct
            and within_items.value >= _MIN_AGREEMENT
            and within_items.value >= _MIN_RATIO * within_annotators.value
        )

    def _varies(self, reading: Reading) -> bool:
        """Whether labels are determined neither by the item nor by the annotator, nor name them.

        Annotators and labels may have the same numbers, but no word.
        """
        by_item = self.profiles.pair(reading.item, reading.label)
        by_annotator = self.profiles.pair(reading.annotator, reading.label)
        return (
            reading.label.n_distinct <= reading.item.n_distinct / 2
            and reading.label.n_filled >= _MIN_ROWS_PER_CLASS * reading.label.n_distinct
            and not by_item.group_determines_value
            and not by_annotator.group_determines_value
            and not by_annotator.value_determines_group
            and (reading.label.numbers is not None or not share_values(*reading[1:]))
        )

    def _is_oriented(self, reading: Reading) -> bool:
        """Whether it is known which of two columns names items and which annotators."""
        if {"item", "annotator"} & set(self.known):
            return True
        return reading.item.kind is Kind.FILE or reading.annotator.kind is Kind.EMAIL

    def completes(self, reading: Reading) -> bool:
        """Whether the only column without a known role has the one that is left.

        This is for items with one label each, whose agreement is unknown.
        """
        item, annotator, label = reading
        is_wide = share_values(annotator, label)
        if item.is_repeated or is_wide or "annotator" not in self.known:
            return False
        if "item" not in self.known:
            return not item.is_row_number
        is_measured = label.numbers is not None and label.n_distinct > MAX_GRADES
        return not is_measured and not self.is_attribute(annotator, label)

    def allows(self, reading: Reading) -> bool:
        """Whether the content does not exclude a reading."""
        return not self.is_attribute(reading.annotator, reading.label) and self.may_label_once(
            reading.item, reading.annotator
        )

    def plausibility(self, reading: Reading) -> tuple[float, ...]:
        """Return what ranks a reading among those that are allowed; the largest is best."""
        item, annotator, label = reading
        return (
            not item.is_row_number or item.is_repeated,
            annotator.n_distinct > 1,
            item.is_repeated and self.label_once(item, annotator),
            not self.is_attribute(item, label),
            item.n_distinct > annotator.n_distinct,
            annotator.n_distinct >= label.n_distinct,
            self.profiles.pair(item, label).agreement.value if item.is_repeated else 0.0,
        )


def is_counter(item: Profile, column: Profile) -> bool:
    """Whether a column counts the rows of each item from 0 or 1."""
    if column.kind is not Kind.WHOLE or column.numbers is None:
        return False
    filled = (item.coded.codes >= 0) & np.isfinite(column.numbers)
    group, number = item.coded.codes[filled], column.numbers[filled]
    if number.min() not in (0, 1):
        return False
    largest = np.zeros(item.n_distinct)
    np.maximum.at(largest, group, number - number.min() + 1)
    return bool(np.all(largest == np.bincount(group, minlength=item.n_distinct)))


def share_values(column: Profile, other: Profile) -> bool:
    """Whether two columns have a value in common."""
    return bool(np.isin(as_text(column.coded.names), as_text(other.coded.names).tolist()).any())
