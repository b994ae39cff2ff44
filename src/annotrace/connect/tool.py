"""The interface of a labelling tool, and what goes to and from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from annotrace.connect.json_api import JsonApi
from annotrace.labels import LabelTable
from annotrace.labels.reading import Imported


class Prediction(NamedTuple):
    """The estimated class of an item, and the probability that it is correct."""

    item: str
    label: str
    score: float


class Pushed(NamedTuple):
    """What a push did.

    Attributes
    ----------
    version : str
        The name of the predictions in the tool.
    n_sent : int
        Predictions that were sent; 0 if the tool had all of them.
    n_gone : int
        Items that the tool no longer has.
    """

    version: str
    n_sent: int
    n_gone: int


class MarkedGold(NamedTuple):
    """What became of gold items: how many were and are marked, and those without such an answer."""

    n_known: int
    n_marked: int
    unmarked: list[str]


@dataclass(frozen=True)
class Pulled:
    """What a project holds.

    Attributes
    ----------
    table : LabelTable or None
        The labels; every item of the project is in it, also those without labels, and the truth
        is that of gold answers. None if there are no labels.
    used : Imported or None
        The question that was read, and the answers that were skipped.
    data : mapping from item to mapping
        The fields of each item, such as its text.
    notes : sequence of str
        What may be unintended, in words.
    """

    table: LabelTable | None
    used: Imported | None
    data: Mapping[str, Mapping[str, Any]]
    notes: Sequence[str] = ()

    def answers(self) -> Counter[tuple[str, str, str]]:
        """Return how often each (item, annotator, label) occurs; gold answers are by ""."""
        if self.table is None:
            return Counter()
        items, annotators, classes = map(
            _names, (self.table.items, self.table.annotators, self.table.classes)
        )
        columns = (self.table.item, self.table.annotator, self.table.label)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found = Counter((items[i], annotators[a], classes[k]) for i, a, k in rows)
        if self.table.truth is not None:
            truth = enumerate(self.table.truth.tolist())
            found.update((items[item], "", classes[known]) for item, known in truth if known >= 0)
        return found

    def n_changes(self, before: Pulled) -> int:
        """Return how many answers and items are new, gone or changed."""
        now, then = self.answers(), before.answers()
        n_items = len(self.data.keys() ^ before.data.keys())
        return n_items + max((now - then).total(), (then - now).total())


def _names(names: Any) -> list[str]:
    return [str(name) for name in names.tolist()]


class LabellingTool(Protocol):
    """A project in a labelling tool.

    What a tool cannot do raises an `UnsupportedError` that says so. Every method may be repeated
    after a failure: it completes what is missing, and does nothing twice.

    Attributes
    ----------
    title : str
        The name of the tool.
    files : JsonApi
        The server of the files that items name by address, such as images.
    """

    title: str
    files: JsonApi

    def pull(self) -> Pulled:
        """Return the items and answers."""

    def marker(self) -> Any:
        """Return what changes whenever an answer does, much faster than `pull`."""

    def push(self, predictions: Sequence[Prediction]) -> Pushed:
        """Replace the predictions that annotrace has pushed before; those of others stay."""

    def queue(self, plan: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Show each annotator the items to label; return where, by annotator."""

    def mark_gold(self, gold: Mapping[str, str]) -> MarkedGold:
        """Mark answers with the class of a gold item as its truth."""

    def subscribe(self, url: str) -> None:
        """Have changes reported to an address by HTTP."""

    def unsubscribe(self, url: str) -> None:
        """Undo `subscribe`."""
