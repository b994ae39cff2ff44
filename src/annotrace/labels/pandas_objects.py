"""JSON objects of objects, as pandas' `to_json` writes a frame: by columns or by rows.

The default, `orient="columns"`, is an object of columns, each with a value for every row, and
`orient="index"` is an object of rows, each with a value for every column. Missing values are null.
A frame in the wide form then looks like an object of tasks, each with the label of every worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from annotrace.labels.columns import has_item_column

Orient: TypeAlias = Literal["columns", "index", "unclear"]
INDEX = ""  # The name of the index in pandas' csv files.


def wide_orient(record: Mapping[str, Any]) -> Orient | None:
    """Return how pandas may have written a frame in the wide form; None if it has not.

    All inner objects of such a frame have the same names in the same order. The names of rows are
    certain only if they are the default of pandas, 0, 1, 2, ..., and the other names are not.

    >>> wide_orient({"ann": {"0": "cat", "1": None}, "bob": {"0": "cat", "1": "dog"}})
    'columns'
    >>> wide_orient({"t1": {"ann": "cat", "bob": "dog"}, "t2": {"ann": "cat", "bob": "cat"}})
    'unclear'
    """
    parts = list(record.values())
    inner = list(parts[0]) if parts and isinstance(parts[0], dict) else []
    if not inner or any(not isinstance(part, dict) or list(part) != inner for part in parts):
        return None
    if _count_up(inner) == _count_up(list(record)):
        return "unclear"
    return "columns" if _count_up(inner) else "index"


def _count_up(names: Sequence[str]) -> bool:
    return list(names) == list(map(str, range(len(names))))


def frame_rows(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rows of a frame by their index; empty if the object is something else.

    Objects with an item column are rows; otherwise they are columns. Without an item column, the
    index is added, as it names the items.
    """
    parts = list(record.values())
    if not parts or not all(isinstance(part, dict) for part in parts):
        return {}
    if has_item_column(list(parts[0])):
        return dict(record)
    if any(list(part) != list(parts[0]) for part in parts):
        return {}
    rows = {row: {name: values[row] for name, values in record.items()} for row in parts[0]}
    if has_item_column(list(record)) or INDEX in record:
        return rows
    return {row: {INDEX: row, **values} for row, values in rows.items()}
