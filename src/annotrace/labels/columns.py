"""Detection of columns: by the name that the caller gives, or by usual names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from annotrace.errors import InputError

# Strongest first: in a file with both `item` and `id`, `item` names the item.
_USUAL_NAMES = {
    "item": "item task image example sample instance question document doc object unit filename "
    "file path url hit id",
    "annotator": "annotator worker rater labeler labeller coder reader judge expert user performer "
    "participant",
    "label": "label class answer response annotation category judgement judgment choice vote "
    "rating",
    "truth": "truth ground_truth groundtruth gold gold_label gt true_label true_class",
}
USUAL_NAMES = {role: names.split() for role, names in _USUAL_NAMES.items()}

# `annotation_id` numbers the rows, whereas `class_id` is a class.
_ROW_NUMBERS = frozenset(
    f"{name}_id" for name in USUAL_NAMES["label"] if name not in ("label", "class", "category")
)


class ColumnNames(NamedTuple):
    """Column names given by the caller; None if they are to be detected."""

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    truth: str | None = None


@dataclass(frozen=True)
class Layout:
    """The role of each column of a file or frame.

    Attributes
    ----------
    item, annotator, label, truth : column name or None
        `annotator` and `label` are None in the wide form.
    answers : tuple of column names
        One per annotator in the wide form; empty in the long form.
    """

    item: Any
    annotator: Any = None
    label: Any = None
    truth: Any = None
    answers: tuple[Any, ...] = ()

    @property
    def wide(self) -> bool:
        """Whether there is one row per item and one column per annotator."""
        return bool(self.answers)


def find_layout(columns: Sequence[Any], names: ColumnNames, source: str) -> Layout:
    """Detect the role of each column, and whether the table is long or wide."""
    check_distinct(columns, source)
    found = find_roles(columns, names, source)
    if None not in (found["item"], found["annotator"], found["label"]):
        return Layout(**found)
    if found["annotator"] is None and found["label"] is None:
        return _wide_layout(columns, found["item"], found["truth"], source)
    missing = [role for role in ("item", "annotator", "label") if found[role] is None]
    raise InputError(_not_found(columns, missing, source))


def find_roles(columns: Sequence[Any], names: ColumnNames, source: str) -> dict[str, Any]:
    """Return the column of each role, or None; no column has two roles."""
    found = {
        role: find_column(columns, role, source, name) for role, name in names._asdict().items()
    }
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
            raise InputError(f"{source} has no column {given!r}; {_describe_columns(columns)}.")
        return given
    ranked = sorted((rank, name) for name in columns if (rank := _rank(str(name), role)))
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        raise InputError(
            f"{source}: both {ranked[0][1]!r} and {ranked[1][1]!r} may be the {role} column. "
            f"Name it with {role}= (--{role} on the command line)."
        )
    return ranked[0][1] if ranked else None


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


def _wide_layout(columns: Sequence[Any], item: Any, truth: Any, source: str) -> Layout:
    if item is None and len(columns) > 1:
        item = _pandas_index(columns)
    if item is None:
        raise InputError(_not_found(columns, ["item", "annotator", "label"], source))
    answers = tuple(name for name in columns if name not in (item, truth))
    if not answers:
        raise InputError(_not_found(columns, ["annotator", "label"], source))
    return Layout(item=item, truth=truth, answers=answers)


def _pandas_index(columns: Sequence[Any]) -> Any | None:
    """Return the index column that pandas' `to_csv` or `to_parquet` wrote, or None."""
    if _normalise(str(columns[0])) in ("", "unnamed:_0"):
        return columns[0]
    return "__index_level_0__" if "__index_level_0__" in columns else None


def _rank(name: str, role: str) -> tuple[int, bool] | None:
    normalised, usual = _normalise(name), USUAL_NAMES[role]
    if normalised in usual:
        return usual.index(normalised), False
    stem = re.sub(r"_(id|name)$", "", normalised)
    if stem in usual and normalised not in _ROW_NUMBERS:
        return usual.index(stem), True
    return None


def _normalise(name: str) -> str:
    words = re.sub(r"(?<=[a-zA-Z0-9])(?=[A-Z][a-z])", "_", name.strip())
    return re.sub(r"[\s_.-]+", "_", words).lower()


def _not_found(columns: Sequence[Any], roles: list[str], source: str) -> str:
    options = ", ".join(f"{role}=" for role in roles)
    return (
        f"{source}: found no {' and no '.join(roles)} column; {_describe_columns(columns)}. "
        f"Name the columns with {options} (--{', --'.join(roles)} on the command line), or use a "
        "wide table: an item column, and one column of answers per annotator."
    )


def _describe_columns(columns: Sequence[Any], limit: int = 20) -> str:
    shown = ", ".join(repr(name)[:60] for name in columns[:limit])
    return f"it has {shown}{', ...' if len(columns) > limit else ''}"
