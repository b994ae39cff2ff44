"""Things with a short name: methods, aggregations, structures of confusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from annotrace.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """What there is to know about a thing before using it.

    Attributes
    ----------
    name : str
    factory : callable
        A class, or a `functools.partial` of one.
    summary : str
    paper : str
    year : int or None
    """

    name: str
    factory: Callable[..., T]
    summary: str
    paper: str = "annotrace"
    year: int | None = None


class Registry(Mapping[str, Entry[T]]):
    """A mapping from names to entries, in the order in which they were registered.

    Parameters
    ----------
    kind : str
        What the entries are called in messages: "method", for example.
    *entries : Entry
    """

    def __init__(self, kind: str, *entries: Entry[T]) -> None:
        self.kind = kind
        self._entries = {entry.name: entry for entry in entries}

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Entry[T]:
        if name not in self._entries:
            known = ", ".join(self._entries)
            raise InputError(f"There is no {self.kind} {name!r}; there are {known}.")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def register(self, entry: Entry[T]) -> None:
        """Add an entry, or replace the one of the same name."""
        self._entries[entry.name] = entry

    def make(self, name: str, /, *args: Any, **params: Any) -> T:
        """Return a new instance by name."""
        return self[name].factory(*args, **params)
