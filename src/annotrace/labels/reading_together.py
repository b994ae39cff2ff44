"""Parquet files read by several processes, of which each reads rows of its own.

The rows of all files, one after the other, are divided into parts of equal length. The first
process finds out which columns have the labels. It asks for each column that it needs; every
process then reads and encodes its own part, of which only the codes and the distinct names travel.
The column is that of one process, with the same codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from annotrace.errors import ProcessLostError
from annotrace.labels.documents import Document
from annotrace.labels.sheets import Sheet, stack_sheets
from annotrace.labels.vocabulary import Coded, merge_vocabularies

if TYPE_CHECKING:
    from annotrace.distributed import Processes


def _no_more() -> Any:
    """Return what the first process sends in place of a column's name when it has read all."""
    return None


@contextmanager
def others_answer(processes: Processes) -> Iterator[None]:
    """Let `answer_first` return in the other processes at the end of the block.

    After Ctrl-C, perhaps in the middle of an exchange, they end when this process does.
    """
    try:
        yield
    except Exception:
        with suppress(ProcessLostError):
            processes.from_first(_no_more)
        raise
    processes.from_first(_no_more)


def answer_first(open_documents: Callable[[], Sequence[Document]], processes: Processes) -> None:
    """Read parts of columns for the first process, until it needs no more of them.

    Parameters
    ----------
    open_documents : callable
        Returns the documents that the first process reads.
    processes : Processes
    """
    own: Sheet | None = None
    while (name := processes.from_first(_no_more)) is not None:
        if own is None:
            own = part_of_rows(open_documents(), processes.rank, processes.size)
        processes.collect(own.column(name))


def share_columns(sheet: Sheet, documents: Sequence[Document], processes: Processes) -> Sheet:
    """Return the sheet of documents with columns of which each process reads a part.

    Only text and integers in parquet files are divided: how other values are written as text
    depends on the whole column.

    Parameters
    ----------
    sheet : Sheet
        With the rows of all documents.
    documents : sequence of Document
    processes : Processes
        Others call `answer_first`.
    """
    n_rows = sum(document.n_rows for document in documents)
    in_parts = all(document.rows is not None for document in documents)
    if processes.size == 1 or n_rows < processes.size or not in_parts:
        return sheet
    own, one_at_a_time = part_of_rows(documents, 0, processes.size), Lock()

    def column(name: Any) -> Coded:
        if sheet.texts is None or sheet.texts(name) is None:
            return sheet.column(name)
        with one_at_a_time:
            processes.from_first(lambda: name)
            part = None
            try:
                part = own.column(name)
            finally:
                # The others wait here, whether or not the part can be read.
                parts = processes.collect(part)
        codes, names = merge_vocabularies([part for part in parts if part is not None])
        return Coded(np.concatenate(codes), names)

    return replace(sheet, column=column)


def part_of_rows(documents: Sequence[Document], rank: int, size: int) -> Sheet:
    """Return one of `size` parts of the rows of all documents, which has at least one row."""
    lengths = [document.n_rows for document in documents]
    starts = np.cumsum([0, *lengths]).tolist()
    first, last = starts[-1] * rank // size, starts[-1] * (rank + 1) // size
    parts = []
    for document, start in zip(documents, starts, strict=False):
        rows = range(max(first - start, 0), min(last - start, document.n_rows))
        if rows and document.rows is not None:
            parts.append(document.rows(rows.start, rows.stop))
    return stack_sheets(parts)
