"""Columns that speak against a reading of a table, as they may have one of its roles too.

A column is explained if it describes items or annotators, numbers the rows, or is measured and
depends on neither. Any other column may be the item, the annotator or the label itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from annotrace.labels.profiles import Profile
from annotrace.labels.role_evidence import (
    MAX_GRADES,
    Evidence,
    Reading,
    is_counter,
    share_values,
)
from annotrace.labels.value_kinds import Kind

# Agreement and correlation of a column that depends on neither items nor annotators.
_NO_AGREEMENT, _MAX_AGREEMENT, _NO_CORRELATION = 0.05, 0.15, 0.3
# The agreement of labels that may be the number of a batch, where the true ones are unanimous.
_NEARLY_UNANIMOUS = 0.9
# Rows that follow a row of another item, of which the labels of both are compared.
_MIN_BOUNDARIES = 20
# Repeated rows that show that a column without exception describes items, and is no label.
_MIN_REPEATED_ROWS = 50


class Rivals:
    """The search for columns that a reading leaves unexplained.

    Parameters
    ----------
    evidence : Evidence
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._profiles = evidence, evidence.profiles

    def find(self, reading: Reading) -> Iterator[Reading]:
        """Yield a reading for each column that another one leaves unexplained."""
        known = self._evidence.known
        others = [part for part in self._profiles.columns if part not in reading]
        if not {"item", "annotator"} & set(known) and self._may_be_swapped(others, reading):
            yield reading._replace(item=reading.annotator, annotator=reading.item)
        checks = {
            "annotator": self._may_be_annotator,
            "item": self._may_be_item,
            "label": self._may_be_label,
        }
        for column in others:
            roles = (role for role in checks if role not in known and checks[role](column, reading))
            if (role := next(roles, None)) is not None:
                yield reading._replace(**{role: column})

    def _may_be_swapped(self, others: Iterable[Profile], reading: Reading) -> bool:
        """Whether a column describes annotators as items are described: by a text or true class."""
        attributes = [
            part for part in others if self._evidence.is_attribute(reading.annotator, part)
        ]
        described = [*attributes, *self._profiles.equals(reading.annotator)]
        return any(part.kind in (Kind.FILE, Kind.URL, Kind.TEXT) for part in described) or any(
            share_values(part, reading.label) for part in attributes
        )

    def _may_be_annotator(self, column: Profile, reading: Reading) -> bool:
        if column.kind is Kind.SCORE or self._evidence.is_attribute(reading.item, column):
            return False
        if self._evidence.is_attribute(reading.annotator, column):
            return self._evidence.label_once(reading.item, column)
        if is_counter(reading.item, reading.annotator):
            return column.is_repeated or not column.is_row_number
        return column.is_repeated and self._evidence.may_label_once(reading.item, column)

    def _may_be_item(self, column: Profile, reading: Reading) -> bool:
        if not column.is_repeated:
            return not column.is_row_number
        if column.kind is Kind.SCORE or self._evidence.is_attribute(reading.annotator, column):
            return False
        if self._evidence.is_attribute(reading.item, column):
            return self._evidence.label_once(column, reading.annotator)
        return self._evidence.may_label_once(column, reading.annotator)

    def _may_be_label(self, column: Profile, reading: Reading) -> bool:
        if column.kind is not Kind.SCORE and (not column.is_repeated or column.is_in_blocks):
            return False
        if self._evidence.is_attribute(reading.item, column):
            return self._may_be_unanimous(column, reading)
        if self._evidence.is_attribute(reading.annotator, column):
            return False
        return not self._is_measurement(column, reading)

    def _may_be_unanimous(self, column: Profile, reading: Reading) -> bool:
        """Whether a column that is the same within items may be labels on which all agree."""
        if not column.may_be_label or share_values(column, reading.label):
            return False
        n_repeated = reading.item.n_filled - reading.item.n_distinct
        agreement = self._profiles.pair(reading.item, reading.label).agreement.value
        is_certain = n_repeated >= _MIN_REPEATED_ROWS and agreement < _NEARLY_UNANIMOUS
        return not is_certain or self._follows_rows(reading)

    def _follows_rows(self, reading: Reading) -> bool:
        """Whether labels depend on the order of rows, as days of the week do, rather than items."""
        item, label = reading.item.coded.codes, reading.label.coded.codes
        other = (item[1:] != item[:-1]) & (label[1:] >= 0) & (label[:-1] >= 0)
        if other.sum() < _MIN_BOUNDARIES:
            return False
        share = np.mean(label[1:][other] == label[:-1][other])
        pair = self._profiles.pair(reading.item, reading.label)
        return bool(share - pair.chance > pair.agreement.value * (1 - pair.chance) / 2)

    def _is_measurement(self, column: Profile, reading: Reading) -> bool:
        """Whether a column has many numbers that depend on neither items nor annotators."""
        is_graded = column.n_distinct <= MAX_GRADES and column.kind is not Kind.SCORE
        if column.numbers is None or is_graded:
            return False
        return all(self._is_independent(column, group) for group in reading[:2])

    def _is_independent(self, column: Profile, group: Profile) -> bool:
        agreement = self._profiles.pair(group, column).agreement
        return (
            agreement.value <= _NO_AGREEMENT
            and agreement.high <= _MAX_AGREEMENT
            and self._profiles.correlation(group, column) <= _NO_CORRELATION
        )
