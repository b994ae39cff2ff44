"""Classes that are whole numbers, which pandas writes as 1.0 where a column has missing values.

In a wide table, the same class is then 1.0 in some columns, and 1 in those without missing values.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from annotrace.labels.building import Columns, TableOptions
from annotrace.labels.vocabulary import TEXT, Coded, Names, as_text, merge_vocabularies

_WHOLE = re.compile(r"-?\d+(\.0)?")
_DECIMAL = ".0"


def drop_decimals(columns: Columns, options: TableOptions) -> Columns:
    """Return columns whose labels and truth are 1 instead of 1.0, if all labels are whole numbers.

    They stay as they are if the caller names classes or answers to skip in this form.
    """
    given = [*(options.classes if options.classes is not None else ()), *options.skip]
    if any(map(_has_decimal, map(str, given))) or not _are_pandas_numbers(columns.label.names):
        return columns
    truth = None if columns.truth is None else shorten(columns.truth)
    return replace(columns, label=shorten(columns.label), truth=truth)


def _are_pandas_numbers(names: Names) -> bool:
    """Whether names are whole numbers, some of them with a decimal."""
    texts = as_text(names).tolist()
    return any(map(_has_decimal, texts)) and all(map(_WHOLE.fullmatch, texts))


def _has_decimal(name: str) -> bool:
    return name.endswith(_DECIMAL) and _WHOLE.fullmatch(name) is not None


def shorten(column: Coded) -> Coded:
    """Return a column with 1 instead of 1.0."""
    if column.names.dtype != TEXT or not np.strings.endswith(column.names, _DECIMAL).any():
        return column
    names = column.names.tolist()
    shorter = [name.removesuffix(_DECIMAL) if _has_decimal(name) else name for name in names]
    (codes,), names = merge_vocabularies([Coded(column.codes, np.array(shorter, dtype=TEXT))])
    return Coded(codes, names)
