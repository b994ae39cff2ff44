"""The constructors of a label table: from codes, frames, arrays and files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from annotrace.labels.codes import Repeats, check_codes, check_truth, n_codes
from annotrace.labels.columns import ColumnNames
from annotrace.labels.vocabulary import Codes, Names

if TYPE_CHECKING:
    from annotrace.labels.table import LabelTable


class TableConstructors:
    """The class methods of `LabelTable` that create tables."""

    __slots__ = ()

    @classmethod
    def from_codes(
        cls,
        item: ArrayLike,
        annotator: ArrayLike,
        label: ArrayLike,
        *,
        n_items: int | None = None,
        n_annotators: int | None = None,
        n_classes: int | None = None,
        truth: ArrayLike | None = None,
    ) -> LabelTable:
        """Create a table from codes that count from 0; item k is row k of the features.

        Parameters
        ----------
        item, annotator, label : array-like of int, shape (n_labels,)
        n_items, n_annotators, n_classes : int, optional
            One more than the largest code by default.
        truth : array-like of int, shape (n_items,), optional
            The true class of each item, -1 if unknown.
        """
        codes: list[Codes] = []
        names: list[Names] = []
        sizes = {"item": n_items, "annotator": n_annotators, "label": n_classes}
        for values, (role, size) in zip((item, annotator, label), sizes.items(), strict=True):
            n_names = n_codes(values, role) if size is None else size
            codes.append(check_codes(values, n_names, role))
            names.append(np.arange(n_names, dtype=np.int32))
        items, annotators, classes = names
        known = None if truth is None else check_truth(truth, len(items), len(classes))
        table: type[LabelTable] = cls  # type: ignore[assignment]
        return table(
            *codes,
            items=items,
            annotators=annotators,
            classes=classes,
            truth=known,
            positional=True,
        )

    @classmethod
    def from_long(
        cls,
        frame: Any,
        *,
        item: str | None = None,
        annotator: str | None = None,
        label: str | None = None,
        truth: str | None = None,
        classes: Sequence[Any] | None = None,
        skip: Collection[Any] = (),
        repeats: Repeats = "keep",
    ) -> LabelTable:
        """Create a table from a frame with one row per label.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, Hugging Face dataset, or dict of columns
        item, annotator, label, truth : str, optional
            Column names; detected by usual names (task, worker, answer, ...) by default.
        classes : sequence, optional
            All classes, in order; any other label is then an error.
        skip : collection
            Answers that are not labels ("unsure", or "" for empty cells): their rows are left out.
        repeats : {"keep", "first", "last", "error"}
            Which labels to keep if an annotator labelled an item more than once.
        """
        from annotrace.labels.building import TableOptions
        from annotrace.labels.frames import table_from_long

        names = ColumnNames(item, annotator, label, truth)
        return table_from_long(frame, names, TableOptions(classes, skip, repeats))

    @classmethod
    def from_wide(
        cls,
        answers: Any,
        *,
        items: Sequence[Any] | None = None,
        annotators: Sequence[Any] | None = None,
        item: str | None = None,
        truth: str | None = None,
        classes: Sequence[Any] | None = None,
        skip: Collection[Any] = (),
    ) -> LabelTable:
        """Create a table from one row per item and one column per annotator.

        Parameters
        ----------
        answers : array of shape (n_items, n_annotators), or frame
            Missing labels are -1 (among whole numbers), NaN or None in an array, and null or ""
            in a frame, where -1 is a class (with a warning).
        items, annotators : sequence, optional
            Names of the rows and columns of an array; items are positions by default.
        item, truth : str, optional
            The columns of a frame with the item names and true classes.
        classes, skip
            As in `from_long`.
        """
        from annotrace.labels.building import TableOptions
        from annotrace.labels.frames import table_from_wide

        names, options = ColumnNames(item, truth=truth), TableOptions(classes, skip)
        return table_from_wide(answers, names, options, items=items, annotators=annotators)

    @classmethod
    def read(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        item: str | None = None,
        annotator: str | None = None,
        label: str | None = None,
        truth: str | None = None,
        question: str | None = None,
        annotator_name: str | None = None,
        format: str | None = None,
        classes: Sequence[str] | None = None,
        skip: Collection[Any] = (),
        repeats: Repeats = "keep",
    ) -> LabelTable:
        """Read a table from files; the format is detected by content.

        Reads long and wide tables (csv, tsv, xlsx, json, jsonl, parquet, npy, npz), and exports of
        Label Studio, Prodigy, Argilla, doccano, CVAT, Labelbox, Ground Truth and peerannot, gzipped
        or not. Names and labels are text, exactly as written in the file. An npz file has three
        columns named by role or one array as in `from_wide`, and optionally `items`, `annotators`,
        `classes` and `truth`.

        Parameters
        ----------
        path : str or Path, or a sequence of them
            A folder stands for all label files in it.
        item, annotator, label, truth, classes, skip, repeats
            As in `from_long`. In the export of a tool, `item` is the field that names the item.
        question, annotator_name, format : str, optional
            For exports of tools: which question to read if there are several, who labelled if the
            file does not say, and the name of the format ("table" for none).
        """
        from annotrace.labels.building import TableOptions
        from annotrace.labels.importing import ExportOptions
        from annotrace.labels.reading import read_table

        names = ColumnNames(item, annotator, label, truth)
        options = TableOptions(classes, skip, repeats)
        return read_table(path, names, options, ExportOptions(format, question, annotator_name))[0]
