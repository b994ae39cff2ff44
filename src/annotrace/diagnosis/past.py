"""What annotators did before: counts of reports by true class, as labels of known items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.labels.table import LabelTable


def with_past(
    table: LabelTable, posterior: NDArray[Any], gold: NDArray[Any], past: NDArray[Any]
) -> tuple[LabelTable, NDArray[Any], NDArray[Any]]:
    """Give a table, its posterior and its gold with a further item for each label of the past.

    Parameters
    ----------
    table : LabelTable
    posterior : ndarray of shape (n_items, n_classes)
    gold : ndarray of int, shape (n_items,)
        Codes of known classes, -1 elsewhere.
    past : ndarray of shape (n_annotators, n_classes, n_classes)
        Counts [annotator, true, reported]; of a fraction of a label the nearest whole number.
    """
    counts = np.rint(past).astype(np.int64)
    cells = np.nonzero(counts)
    annotator, true, reported = (np.repeat(codes, counts[cells]) for codes in cells)
    n_items = table.n_items + len(annotator)
    joined = LabelTable(
        np.concatenate([table.item, np.arange(table.n_items, n_items)]),
        np.concatenate([table.annotator, annotator]),
        np.concatenate([table.label, reported]),
        items=np.arange(n_items),
        annotators=table.annotators,
        classes=table.classes,
    )
    certain = np.eye(table.n_classes, dtype=posterior.dtype)[true]
    return joined, np.concatenate([posterior, certain]), np.concatenate([gold, true])
