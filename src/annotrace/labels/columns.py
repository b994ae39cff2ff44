"""Detection of columns by name: the one that the caller gives, or usual names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from annotrace.errors import InputError
from annotrace.labels.usual_names import OTHER_NAMES, ROW_NUMBERS, USUAL_NAMES, WEAK_NAMES

# The name that pandas' `to_parquet` gives to an index without a name.
INDEX_COLUMN = "__index_level_0__"


class ColumnNames(NamedTuple):
    """Column names given by the caller; None if they are to be detected.

    `annotators` are the columns of a wide table with the answers of one annotator each.
    """

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    truth: str | None = None
    annotators: tuple[str, ...] = ()

    @property
    def by_role(self) -> dict[str, str | None]:
        """The columns of the four roles."""
        return {role: getattr(self, role) for role in ("item", "annotator", "label", "truth")}


@dataclass(frozen=True)
class Layout:
    """The role of each column of a file or frame.

    Attributes
    ----------
    item, annotator, label, truth : column name or None
        `annotator` and `label` are None in the wide form.
    answers : tuple of column names
        One per annotator in the wide form; empty in the long form.
    by_content : tuple of str
        The roles whose columns were recognised by content.
    set_aside : tuple of column names
        Columns of the wide form that are not answers, as their values are not labels.
    annotator_name : str or None
        The annotator of all labels in a long form without a column of annotators.
    without_decimals : bool
        Whether labels such as 1.0 were read as 1.
    """

    item: Any
    annotator: Any = None
    label: Any = None
    truth: Any = None
    answers: tuple[Any, ...] = ()
    by_content: tuple[str, ...] = ()
    set_aside: tuple[Any, ...] = ()
    annotator_name: str | None = None
    without_decimals: bool = False

    @property
    def wide(self) -> bool:
        """Whether there is one row per item and one column per annotator."""
        return bool(self.answers)


def find_roles(columns: Sequence[Any], names: ColumnNames, source: str) -> dict[str, Any]:
    """Return the column of each role, or None; no column has two roles."""
    found = {role: find_column(columns, role, source, name) for role, name in names.by_role.items()}
    for (role, name), (other, same) in combinations(found.items(), 2):
        if name is not None and name == same:
            raise InputError(
                f"{source}: {name!r} cannot be both the {role} and the {other} column. Name both "
                f"with {role}= and {other}= (--{role}, --{other})."
            )
    return found


def find_column(
    columns: Sequence[Any], role: str, source: str, given: str | None = None
) -> Any | None:
    """Return the column of a role ("item", ...): the given one, else the best match, else None."""
    if given is not None:
        if given not in columns:
            raise InputError(f"{source} has no column {given!r}; {describe_columns(columns)}.")
        return given
    ranked = sorted((rank, name) for name in columns if (rank := _rank(str(name), role)))
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        raise InputError(
            f"{source}: both {ranked[0][1]!r} and {ranked[1][1]!r} may be the {role} column. "
            f"Name it with {describe_option(role)}."
        )
    return ranked[0][1] if ranked else None


def describe_option(role: str) -> str:
    """Describe how to name the column of a role."""
    option = "--text, or --text-column for a file" if role == "text" else f"--{role}"
    return f"{role}= ({option} on the command line)"


def as_columns(names: Iterable[Any] | None) -> tuple[Any, ...]:
    """Return the names of several columns; none if they are not given."""
    if isinstance(names, str):
        raise InputError(
            f"Expected `annotators` to be a list, but got {names!r}. Use annotators=[{names!r}]."
        )
    return tuple(names or ())


def has_item_column(names: Sequence[Any]) -> bool:
    """Whether one of some names is a usual name of an item column."""
    return any(_rank(str(name), "item") for name in names)


def column_names(frame: Any) -> list[Any]:
    """Return the column names of a frame; an empty list for anything else."""
    # pyarrow's `columns` are the columns themselves.
    return list(getattr(frame, "column_names", getattr(frame, "columns", [])))


def check_distinct(columns: Sequence[Any], source: str) -> None:
    """Check that no two columns have the same name."""
    positions: dict[Any, int] = {}
    for position, name in enumerate(columns):
        first = positions.setdefault(name, position)
        if first < position:
            raise InputError(
                f"{source}: columns {first + 1} and {position + 1} are both named {name!r}. "
                "Rename one of them."
            )


def is_weak_item(name: Any) -> bool:
    """Whether a usual name of an item column is as usual for numbers of rows, or addresses."""
    return _normalise(str(name)) in WEAK_NAMES


def is_other(name: Any) -> bool:
    """Whether a name is usual for something else than a role: a remark, a time, a confidence."""
    return _normalise(str(name)) in OTHER_NAMES


def pandas_index(columns: Sequence[Any]) -> Any | None:
    """Return the index column that pandas' `to_csv` or `to_parquet` wrote, or None."""
    if _normalise(str(columns[0])) in ("", "unnamed:_0"):
        return columns[0]
    return INDEX_COLUMN if INDEX_COLUMN in columns else None


def _rank(name: str, role: str) -> tuple[int, bool] | None:
    normalised, usual = _normalise(name), USUAL_NAMES[role]
    if normalised in usual:
        return usual.index(normalised), False
    stem = re.sub(r"_(id|name)$", "", normalised)
    if role == "text":
        return None  # An id of a text is no text, but it names the item.
    if stem in usual and normalised not in ROW_NUMBERS:
        return usual.index(stem), True
    if role == "item" and normalised.endswith("_id") and stem in USUAL_NAMES["text"]:
        return len(usual), True
    return None


def _normalise(name: str) -> str:
    words = re.sub(r"(?<=[a-zA-Z0-9])(?=[A-Z][a-z])", "_", name.strip())
    letters = unicodedata.normalize("NFKD", re.sub(r"[\s_.-]+", "_", words).lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def describe_missing(columns: Sequence[Any], roles: Sequence[str], source: str) -> str:
    """Describe that no column was found for some roles, and what to do."""
    options = ", ".join(f"{role}=" for role in roles)
    return (
        f"{source}: found no {' and no '.join(roles)} column; {describe_columns(columns)}. "
        f"Name the columns with {options} (--{', --'.join(roles)} on the command line), or use a "
        "wide table (from_wide for frames): an item column, and one column of answers per "
        "annotator."
    )


def describe_columns(columns: Sequence[Any], limit: int = 20) -> str:
    """Quote the first columns, as in "it has 'a', 'b'"."""
    shown = ", ".join(repr(name)[:60] for name in columns[:limit])
    return f"it has {shown}{', ...' if len(columns) > limit else ''}"
