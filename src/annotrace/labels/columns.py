"""Which column is which: by the name given, else by the names people use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from annotrace.errors import InputError

# Strongest first: a file with both `item` and `id` means the first.
ROLES: dict[str, tuple[str, ...]] = {
    "item": (
        "item",
        "task",
        "image",
        "example",
        "sample",
        "instance",
        "question",
        "document",
        "doc",
        "object",
        "unit",
        "filename",
        "file",
        "path",
        "url",
        "hit",
        "id",
    ),
    "annotator": (
        "annotator",
        "worker",
        "rater",
        "labeler",
        "labeller",
        "coder",
        "reader",
        "judge",
        "expert",
        "user",
        "performer",
        "participant",
    ),
    "label": (
        "label",
        "class",
        "answer",
        "response",
        "annotation",
        "category",
        "judgement",
        "judgment",
        "choice",
        "vote",
        "rating",
    ),
    "truth": (
        "truth",
        "ground_truth",
        "groundtruth",
        "gold",
        "gold_label",
        "gt",
        "true_label",
        "true_class",
    ),
}

# `annotation_id` numbers the rows; `class_id` is a class.
_NUMBERS_ROWS = frozenset(
    f"{name}_id" for name in ROLES["label"] if name not in ("label", "class", "category")
)


class Named(NamedTuple):
    """Columns named by the caller; None where they are to be found."""

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    truth: str | None = None


@dataclass(frozen=True)
class Layout:
    """Where the parts of a label table stand among the columns of a file or frame.

    Attributes
    ----------
    item : column name
    annotator, label : column name, or None in the wide form
    truth : column name, or None
    answers : tuple of column names
        One for each annotator in the wide form; empty in the long form.
    """

    item: Any
    annotator: Any = None
    label: Any = None
    truth: Any = None
    answers: tuple[Any, ...] = ()

    @property
    def wide(self) -> bool:
        """Whether there is a row an item and a column an annotator."""
        return bool(self.answers)


def find_layout(columns: Sequence[Any], named: Named, source: str) -> Layout:
    """Tell the long form from the wide one, and which column is which.

    Parameters
    ----------
    columns : sequence
        The names of the columns, in order.
    named : Named
    source : str
        What to call the file or frame in a message.
    """
    check_distinct(columns, source)
    found: dict[str, Any] = {
        role: find_column(columns, role, source, name) for role, name in named._asdict().items()
    }
    check_roles(found, source)
    if None not in (found["item"], found["annotator"], found["label"]):
        return Layout(**found)
    if found["annotator"] is None and found["label"] is None:
        return _wide_layout(columns, found["item"], found["truth"], source)
    missing = [role for role in ("item", "annotator", "label") if found[role] is None]
    raise InputError(_not_found(columns, missing, source))


def find_column(
    columns: Sequence[Any], role: str, source: str, given: str | None = None
) -> Any | None:
    """Find the column of a role ("item", ...): the one given, else the best by name, else None."""
    if given is not None:
        if given not in columns:
            raise InputError(f"{source} has no column {given!r}; {_listed(columns)}.")
        return given
    ranked = sorted((rank, name) for name in columns if (rank := _rank(str(name), role)))
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        raise InputError(
            f"{source}: both {ranked[0][1]!r} and {ranked[1][1]!r} may be the {role} column. "
            f"Say which with {role}= (--{role} on the command line)."
        )
    return ranked[0][1] if ranked else None


def names_items(names: Sequence[Any]) -> bool:
    """Tell whether a column of items is among some names, so that these are names of columns."""
    return any(_rank(str(name), "item") for name in names)


def column_names(frame: Any) -> list[Any]:
    """Give the names of a frame's columns; none if it is no frame."""
    # What pyarrow calls its columns are the columns themselves.
    return list(getattr(frame, "column_names", getattr(frame, "columns", [])))


def check_distinct(columns: Sequence[Any], source: str) -> None:
    """Check that no two columns have the same name."""
    places: dict[Any, int] = {}
    for place, name in enumerate(columns):
        first = places.setdefault(name, place)
        if first < place:
            raise InputError(
                f"{source}: columns {first + 1} and {place + 1} are both named {name!r}. "
                "Rename one of them."
            )


def check_roles(found: Mapping[str, Any], source: str) -> None:
    """Check that no column stands for two roles."""
    for (role, name), (other, twin) in combinations(found.items(), 2):
        if name is not None and name == twin:
            raise InputError(
                f"{source}: {name!r} cannot be both the {role} and the {other} column. Say which "
                f"they are with {role}= and {other}= (--{role}, --{other})."
            )


def _wide_layout(columns: Sequence[Any], item: Any, truth: Any, source: str) -> Layout:
    if item is None and len(columns) > 1:
        item = _index_of_pandas(columns)
    if item is None:
        raise InputError(_not_found(columns, ["item", "annotator", "label"], source))
    answers = tuple(name for name in columns if name not in (item, truth))
    if not answers:
        raise InputError(_not_found(columns, ["annotator", "label"], source))
    return Layout(item=item, truth=truth, answers=answers)


def _index_of_pandas(columns: Sequence[Any]) -> Any | None:
    """Find the index of a pandas frame, as `to_csv` (in front) and `to_parquet` write it."""
    if _normalised(str(columns[0])) in ("", "unnamed:_0"):
        return columns[0]
    return "__index_level_0__" if "__index_level_0__" in columns else None


def _rank(name: str, role: str) -> tuple[int, bool] | None:
    plain, known = _normalised(name), ROLES[role]
    if plain in known:
        return known.index(plain), False
    stem = re.sub(r"_(id|name)$", "", plain)
    if stem in known and plain not in _NUMBERS_ROWS:
        return known.index(stem), True
    return None


def _normalised(name: str) -> str:
    words = re.sub(r"(?<=[a-zA-Z0-9])(?=[A-Z][a-z])", "_", name.strip())
    return re.sub(r"[\s_.-]+", "_", words).lower()


def _not_found(columns: Sequence[Any], roles: list[str], source: str) -> str:
    options = ", ".join(f"{role}=" for role in roles)
    return (
        f"{source}: found no {' and no '.join(roles)} column; {_listed(columns)}. "
        f"Say which they are with {options} (--{', --'.join(roles)} on the command line), or give "
        "a wide table: an item column, and one column of answers for each annotator."
    )


def _listed(columns: Sequence[Any], limit: int = 20) -> str:
    shown = ", ".join(repr(name)[:60] for name in columns[:limit])
    return f"it has {shown}{', ...' if len(columns) > limit else ''}"
