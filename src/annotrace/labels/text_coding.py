"""Columns of frames as codes, of text part by part: only codes and distinct names are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.labels.vocabulary import TEXT, Coded, Codes, Names, encode, encode_values

# Below this length, a dictionary is faster than polars; wide tables have many short columns.
SHORT = 5_000
# Names are converted so many at a time, as Python's strings take several times their memory.
PART = 2**18


def encode_series(series: Any) -> Coded:
    """Encode a series of any library; nulls, NaN and "" are empty."""
    import narwhals as nw

    series = nw.from_native(series, series_only=True)
    if series.dtype == nw.String and series.implementation.is_polars():
        return encode_text(series.to_native())
    if series.dtype.is_integer() and not series.is_null().any():
        return Coded(*encode(series.to_numpy()))
    if series.dtype.is_temporal():
        series = series.cast(nw.String)
    return encode_values(series.to_list())


def encode_text(texts: Any) -> Coded:
    """Encode a polars series of text; nulls and "" are empty."""
    return encode_texts([texts]) if len(texts) > SHORT else encode_values(texts.to_list())


def encode_texts(parts: Iterable[Any]) -> Coded:
    """Encode the parts of a column of text, names in the order of first appearance.

    Parameters
    ----------
    parts : iterable of polars series of text
        Nulls and "" are empty.
    """
    import polars as pl

    categories = pl.Categories.random()
    kind = pl.Categorical(categories)
    # Polars forgets categories that no series has.
    kept = pl.Series(dtype=kind)
    coded, new = [np.empty(0, np.int32)], [pl.Series(dtype=pl.String)]
    rows, n_rows, n_names = [np.empty(0, np.int64)], 0, 0
    for part in parts:
        coded.append(_codes(part, kept.dtype))
        first = first_rows(coded[-1], n_names)
        new.append(part.gather(first))
        rows.append(first + n_rows)
        n_rows, n_names = n_rows + len(part), n_names + len(first)
    codes, names, first = np.concatenate(coded), pl.concat(new), np.concatenate(rows)
    del coded, new, rows
    if np.all(first[1:] >= first[:-1]):
        return Coded(codes, as_text_array(names))
    order = np.argsort(first, kind="stable").astype(np.int32)
    # An empty cell, -1, has the last rank.
    rank = np.full(len(names) + 1, -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    for start in range(0, len(codes), PART):
        codes[start : start + PART] = rank[codes[start : start + PART]]
    return Coded(codes, as_text_array(names.gather(order)))


def as_text_array(series: Any) -> Names:
    """Return a polars series of text without nulls as a vocabulary."""
    names = np.empty(len(series), TEXT)
    for start in range(0, len(series), PART):
        names[start : start + PART] = series.slice(start, PART).to_list()
    return names


def _codes(texts: Any, kind: Any) -> Codes:
    """Return the codes of categories, -1 for empty cells."""
    filled = (texts != "").fill_null(False).to_numpy()
    if filled.all():
        return _codes_of_runs(texts, kind)
    codes = np.full(len(texts), -1, np.int32)
    codes[filled] = _categories(texts.filter(filled), kind)
    return codes


def _codes_of_runs(texts: Any, kind: Any) -> Codes:
    """Return the codes of categories of texts; only the first of equal texts in a row is coded.

    The labels of an item usually follow each other, and to code a text takes ten times as long as
    to compare it.
    """
    if not _has_runs(texts.head(PART)):
        return _categories(texts, kind)
    begins = _begins_run(texts)
    codes = _categories(texts.filter(begins), kind)
    return codes[np.cumsum(begins.to_numpy(), dtype=np.int32) - 1]


def _has_runs(texts: Any) -> bool:
    return bool(_begins_run(texts).sum() < len(texts) / 2)


def _begins_run(texts: Any) -> Any:
    return texts.ne_missing(texts.shift())


def _categories(texts: Any, kind: Any) -> Codes:
    codes: Codes = texts.cast(kind).to_physical().to_numpy().astype(np.int32)
    return codes


def first_rows(codes: Codes, start: int) -> NDArray[np.int64]:
    """Return the first row of each code from `start` on, by code."""
    found, highest = [np.empty(0, np.int64)], start - 1
    for begin in range(0, len(codes), PART):
        part = codes[begin : begin + PART]
        reached = np.maximum.accumulate(np.append(np.int32(highest), part))
        found.append(begin + np.flatnonzero(reached[1:] > reached[:-1]))
        highest = int(reached[-1])
    rows = np.concatenate(found)
    if len(rows) == highest + 1 - start:
        return rows
    # Polars numbers categories as they appear, but does not promise it.
    distinct, rows = np.unique(codes, return_index=True)
    return rows[distinct >= start]
