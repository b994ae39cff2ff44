"""Recognition of the item, annotator and label columns of a long table by content.

In a table with one row per label, three things set the columns apart, whatever their names:

- An annotator labels an item once, so that annotators differ within an item much more often than by
  chance, and neither column determines the other.
- Annotators agree on items, so that labels within an item are equal more often than by chance,
  without being determined by the item, as its text or its true class are.
- Labels depend more on items than on annotators, and there are more items than annotators.

A reading of the columns is certain only if it is the only one with this support, and if every other
column is explained: it describes the items or the annotators, numbers the rows, or is measured and
depends on neither. Otherwise the readings are listed for the user to choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from annotrace.labels.profiles import Profile, Profiles
from annotrace.labels.rivals import Rivals
from annotrace.labels.role_evidence import Evidence, Reading

ROLES = Reading._fields


class Recognition:
    """The search for the item, annotator and label columns of a long table.

    Parameters
    ----------
    profiles : Profiles
        The columns that may have a role.
    known : mapping from role to column name
        The roles whose columns are known.
    """

    def __init__(self, profiles: Profiles, known: Mapping[str, Any]) -> None:
        self._profiles, self._known = profiles, known
        self._evidence = Evidence(profiles, known)
        self._rivals = Rivals(self._evidence)

    def find(self) -> Reading | None:
        """Return the reading that is certain; None if there is none."""
        found = self._supported()
        if len(found) != 1 or any(self._rivals.find(found[0])):
            return None
        return self._named(found[0])

    def readings(self) -> list[Reading]:
        """Return the readings that are possible, the most plausible first."""
        found = self._supported()
        if len(found) == 1:
            found += self._rivals.find(found[0])
        found = sorted(found or self._allowed(), key=self._evidence.plausibility, reverse=True)
        return list(map(self._named, found))

    def _named(self, reading: Reading) -> Reading:
        """Return a reading by the columns that name its roles best."""
        columns = zip(ROLES, reading, strict=True)
        return Reading._make(
            part
            if role in self._known or part in self._profiles.constant
            else self._profiles.named_best(part, role)
            for role, part in columns
        )

    def _supported(self) -> list[Reading]:
        evidence = self._evidence
        readings = self._combine(self._columns("annotator"), evidence.label_once)
        found = [reading for reading in readings if evidence.supports(reading)]
        if found or len(self._known) != 2 or len(self._profiles.columns) != 3:
            return found
        readings = self._combine(self._columns("annotator"), lambda *pair: True)
        return [reading for reading in readings if evidence.completes(reading)]

    def _allowed(self) -> list[Reading]:
        """Return the readings that the content does not exclude, with one annotator if need be."""
        annotators = self._columns("annotator")
        if "annotator" not in self._known:
            annotators = annotators + self._profiles.constant
        readings = self._combine(annotators, self._evidence.may_label_once)
        return [reading for reading in readings if self._evidence.allows(reading)]

    def _columns(self, role: str) -> list[Profile]:
        """Return the column of a role if it is known, else those that may have the role."""
        if role in self._known:
            return [part for part in self._profiles.columns if part.name == self._known[role]]
        others = (part for part in self._profiles.columns if part.name not in self._known.values())
        return [part for part in others if getattr(part, f"may_be_{role}")]

    def _combine(
        self, annotators: list[Profile], is_pair: Callable[[Profile, Profile], bool]
    ) -> Iterator[Reading]:
        """Iterate over the readings whose item and annotator are a pair."""
        labels = self._columns("label")
        for item in self._columns("item"):
            for annotator in annotators:
                if item is not annotator and is_pair(item, annotator):
                    for label in labels:
                        if label is not item and label is not annotator:
                            yield Reading(item, annotator, label)
