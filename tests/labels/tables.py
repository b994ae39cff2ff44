"""Columns of a long table of a simulated crowd, for the tests of recognition by content."""

from __future__ import annotations

import numpy as np

from annotrace.labels.sheets import Sheet, with_cache
from annotrace.labels.vocabulary import encode_values


def crowd(n_items=100, n_annotators=8, n_classes=3, per_item=3, accuracy=0.85, seed=0):
    """Draw labels; return the columns photo, who and animal, and the codes of each row."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(n_annotators, per_item, replace=False) for _ in range(n_items)]
    item, annotator = np.repeat(np.arange(n_items), per_item), np.concatenate(chosen)
    truth = rng.integers(0, n_classes, n_items)
    is_right = rng.random(len(item)) < accuracy
    label = np.where(is_right, truth[item], rng.integers(0, n_classes, len(item)))
    columns = {
        "photo": [f"p{k}" for k in item],
        "who": [f"w{k}" for k in annotator],
        "animal": [f"c{k}" for k in label],
    }
    return columns, {"item": item, "annotator": annotator, "label": label, "truth": truth[item]}


def sheet_of(columns):
    """Return columns, whose values may be of any type, as a sheet of text."""
    texts = {name: [str(value) for value in values] for name, values in columns.items()}
    return with_cache(Sheet("x", list(texts), lambda name: encode_values(texts[name])))
