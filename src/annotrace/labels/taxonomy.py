"""Groups of classes: a class tree as a mapping from class to parent, or as a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.vocabulary import Names

Taxonomy = Mapping[Any, Any] | str | PathLike[str]


def class_groups(taxonomy: Taxonomy | None, classes: Names) -> NDArray[np.int32]:
    """Return the group of each class, shape (n_classes,): classes with the same parent.

    Parameters
    ----------
    taxonomy : mapping from class to parent, or path
        A file is a json object, or a csv file with two columns, class and parent, below a header.
        A class that is not in it is a group of its own. None is refused.
    classes : sequence of class names

    Examples
    --------
    >>> class_groups({"cat": "animal", "car": "vehicle", "dog": "animal"}, ["car", "cat", "dog"])
    array([0, 1, 1], dtype=int32)
    """
    if taxonomy is None:
        raise InputError("`structure='taxonomy'` needs a `taxonomy`: {class: group} or a file.")
    given = taxonomy if isinstance(taxonomy, Mapping) else _read(Path(taxonomy))
    parents = {str(name): str(parent) for name, parent in given.items()}
    names = [str(name) for name in classes]
    if not any(name in parents for name in names):
        raise InputError(
            f"Expected `taxonomy` to map classes such as {names[0]!r} to groups, but it has none "
            f"of the {len(names)} classes."
        )
    keys = [(0, parents[name]) if name in parents else (1, name) for name in names]
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], np.int32)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no taxonomy can be read, {error}") from None
    if path.suffix.lower() == ".json":
        return _from_json(content, path)
    parents: dict[str, Any] = {}
    for number, row in enumerate(csv.reader(content.splitlines()), start=1):
        if len(row) != 2:
            raise InputError(
                f"{path}, row {number}: expected two columns, class and parent, but got {len(row)}."
            )
        parents[row[0].strip()] = row[1].strip()
    # The header names no class.
    return dict(list(parents.items())[1:])


def _from_json(content: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError as error:
        raise InputError(f"{path}: not a json file, {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a json object from class to parent.")
    return found
