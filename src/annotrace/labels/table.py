"""The label table: which annotator gave which label to which item."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.labels.codes import (
    Repeats,
    Seed,
    check_columns,
    check_truth,
    item_offsets,
    n_codes,
    sort_by_item,
    split_positions,
)
from annotrace.labels.columns import ColumnNames, as_columns
from annotrace.labels.counting import LabelCounting
from annotrace.labels.frames import (
    POLARS,
    array_from_table,
    as_one_object,
    convert_frame,
    frame_from_table,
    with_frame_library,
)
from annotrace.labels.matching import items_at, match_rows, take_annotators, take_items
from annotrace.labels.vocabulary import Codes, Names, as_names, encode_with, union_names
from annotrace.labels.writing import write_table
from annotrace.limits import LABEL_LIMITS, Limits


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelTable(LabelCounting):
    """Labels as three columns of int32 codes with three vocabularies; immutable.

    Labels are sorted by item, so that the labels of item k are rows ``offsets[k]`` to
    ``offsets[k + 1]``. No array of shape (n_items, n_annotators) is made, except by `to_wide`. A
    repeated (item, annotator) pair is legal and counts as another observation.

    Create tables with `read`, `from_long`, `from_wide` or `from_codes`.

    Attributes
    ----------
    item, annotator, label : ndarray of shape (n_labels,), int32
        Codes, sorted by item; the labels of an item keep their order.
    items, annotators, classes : ndarray
        The vocabularies: the name of each code. An item or annotator may have no label. Items are
        in order of first appearance; annotators (of the long form) and classes are sorted.
    truth : ndarray of shape (n_items,), int32, or None
        The true class of each item, -1 if unknown; for evaluation, not for training.
    positional : bool
        Whether item k is row k of the features (tables from codes and arrays); otherwise items
        have names that must be matched.
    frame_library : str
        The library of the frames that it returns: that of the frame it was made from, or polars.
    source : str or None
        The file that it was read from, for error messages.
    offsets : ndarray of shape (n_items + 1,), int64

    Examples
    --------
    >>> table = LabelTable.from_long(
    ...     {"item": ["a", "a", "b"], "worker": ["kim", "lee", "kim"], "label": [1, 0, 1]}
    ... )
    >>> table
    LabelTable(2 items, 2 annotators, 2 classes, 3 labels)
    >>> table.labels_per_item()
    array([2, 1])
    """

    item: Codes
    annotator: Codes
    label: Codes
    _: KW_ONLY
    items: Names
    annotators: Names
    classes: Names
    truth: Codes | None = None
    positional: bool = False
    frame_library: str = POLARS
    source: str | None = None
    offsets: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        sizes = {"item": self.n_items, "annotator": self.n_annotators, "label": self.n_classes}
        columns = sort_by_item(check_columns([self.item, self.annotator, self.label], sizes))
        arrays: dict[str, NDArray[Any]] = dict(zip(sizes, columns, strict=True))
        arrays["offsets"] = item_offsets(arrays["item"], self.n_items)
        for role in ("items", "annotators", "classes"):
            names = getattr(self, role)
            # A writeable array may belong to the caller.
            arrays[role] = names.copy() if names.flags.writeable else names
        if self.truth is not None:
            arrays["truth"] = check_truth(self.truth, self.n_items, self.n_classes)
        for name, array in arrays.items():
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def read(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        item: str | None = None,
        annotator: str | None = None,
        label: str | None = None,
        truth: str | None = None,
        annotators: Sequence[str] | None = None,
        question: str | None = None,
        annotator_name: str | None = None,
        format: str | None = None,
        query: str | None = None,
        classes: Sequence[str] | None = None,
        skip: Collection[Any] = (),
        repeats: Repeats = "keep",
        limits: Limits = LABEL_LIMITS,
    ) -> LabelTable:
        """Read a table from files; the format is detected by content.

        Reads long and wide tables (csv, tsv, xlsx, json, jsonl, parquet, npy, npz, SQLite, DuckDB)
        and exports of labelling tools (docs/formats.md), gzipped or not. Names and labels are text,
        exactly as written in the file. An npz file has three columns named by role or one array as
        in `from_wide`, and optionally `items`, `annotators`, `classes` and `truth`.

        Parameters
        ----------
        path : str or Path, or a sequence of them
            A folder stands for all label files in it, and a pattern such as ``labels/*.parquet``
            for all files that match. The names of several files are merged; the table is that of
            one file with all of their rows.
        item, annotator, label, truth, annotators, classes, skip, repeats
            As in `from_long` and `from_wide`; `item` may be a field of the export of a tool.
        question, annotator_name, format : str, optional
            For exports of tools: which of several questions, who labelled (also for tables
            without a column of annotators), and which format.
        query : str, optional
            What to select from a database; by default its only table or view.
        limits : Limits
            The largest files that are read, and the seconds that a query may take.
        """
        from annotrace.labels.building import TableOptions
        from annotrace.labels.reading import ExportOptions, read_parts

        names = ColumnNames(item, annotator, label, truth, as_columns(annotators))
        export = ExportOptions(format, question, annotator_name, query)
        options = TableOptions(classes, skip, repeats)
        return cls(**read_parts(path, names, options, export, limits)[0])

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
            Column names; by default detected by usual names (task, worker, answer, ...), or by
            content if that is unambiguous.
        classes : sequence, optional
            All classes, in order; any other label is then an error.
        skip : collection
            Answers that are not labels ("unsure", or "" for empty cells): their rows are left out.
        repeats : {"keep", "first", "last", "error"}
            Which labels to keep if an annotator labelled an item more than once.
        """
        from annotrace.labels.building import TableOptions
        from annotrace.labels.inputs import long_parts

        names = ColumnNames(item, annotator, label, truth)
        parts = long_parts(frame, names, TableOptions(classes, skip, repeats))
        return with_frame_library(cls(**parts), frame)

    @classmethod
    def from_sql(
        cls,
        query: str,
        connection: Any,
        *,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> LabelTable:
        """Create a table from a query with one row per label.

        Parameters
        ----------
        query : str
            A query that selects rows.
        connection : DB-API 2.0 connection
            Of `sqlite3`, `psycopg`, `duckdb` or another package; it stays open.
        parameters : sequence or mapping, optional
            The values of placeholders in the query.
        **options
            As in `from_long`.
        """
        from annotrace.labels.queries import select_columns

        return cls.from_long(select_columns(query, connection, parameters), **options)

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
            Names of the rows and columns of an array; items are positions by default. Of a frame,
            `annotators` are the columns with answers, by default those that share their values.
        item, truth : str, optional
            The columns of a frame with the item names and true classes.
        classes, skip
            As in `from_long`.
        """
        from annotrace.labels.building import TableOptions
        from annotrace.labels.inputs import wide_parts

        names = ColumnNames(item, truth=truth)
        parts = wide_parts(answers, names, TableOptions(classes, skip), items, annotators)
        return with_frame_library(cls(**parts), answers)

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
        sizes = (
            n_codes(item, "item") if n_items is None else n_items,
            n_codes(annotator, "annotator") if n_annotators is None else n_annotators,
            n_codes(label, "label") if n_classes is None else n_classes,
        )
        items, annotators, classes = (np.arange(size, dtype=np.int32) for size in sizes)
        columns: Any = (item, annotator, label)
        names: Any = {"items": items, "annotators": annotators, "classes": classes}
        known: Any = truth
        return cls(*columns, **names, truth=known, positional=True)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.init}
        return partial(LabelTable, **values), ()

    def __repr__(self) -> str:
        return (
            f"LabelTable({self.n_items:,} items, {self.n_annotators:,} annotators, "
            f"{self.n_classes:,} classes, {self.n_labels:,} labels)"
        )

    def __len__(self) -> int:
        return self.n_labels

    def __getitem__(self, rows: Any) -> LabelTable:
        """Select items by position, slice or mask; annotators and classes stay.

        Scikit-learn's tools split a table so, together with the rows of the features.
        """
        return items_at(self, rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        # NumPy would take whatever has a length and can be indexed for a sequence.
        return as_one_object(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelTable):
            return NotImplemented
        ignored = ("frame_library", "source", "offsets")
        compared = (part.name for part in fields(self) if part.name not in ignored)
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in compared)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes, without text longer than 15 bytes."""
        arrays = (getattr(self, part.name) for part in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def replace(self, **changes: Any) -> LabelTable:
        """Return a table with some attributes changed, after checking them."""
        return dataclasses.replace(self, **changes)

    def select_items(self, selection: ArrayLike) -> LabelTable:
        """Select items by code or mask, in the given order; annotators and classes stay."""
        return take_items(self, selection)

    def select_annotators(self, selection: ArrayLike) -> LabelTable:
        """Select annotators by code or mask, in the given order; all items stay."""
        return take_annotators(self, selection)

    def split(self, fraction: float, random_state: Seed = None) -> tuple[LabelTable, LabelTable]:
        """Split the items at random into the rest and a `fraction` of them."""
        rest, part = split_positions(self.n_items, fraction, random_state)
        return self.select_items(rest), self.select_items(part)

    def match_items(
        self, names: ArrayLike | Iterable[Any], *, positional: bool = False
    ) -> LabelTable:
        """Reorder the items to match rows of features, given the item name of each row.

        With ``positional=True`` the names are dropped: item k is row k from then on. Raises
        `InputError` with counts if an item has no row, a row has no item, or a name occurs twice.
        """
        matched = self.select_items(match_rows(self.items, as_names(names), self.source))
        if not positional:
            return matched
        return matched.replace(items=np.arange(self.n_items, dtype=np.int32), positional=True)

    def with_items(self, names: ArrayLike | Iterable[Any]) -> LabelTable:
        """Add items without labels, to be predicted but not trained on.

        The table stays positional if the new items are the next positions.
        """
        items = union_names(self.items, as_names(names))
        truth = self.truth
        if truth is not None:
            truth = np.pad(truth, (0, len(items) - self.n_items), constant_values=-1)
        positional = self.positional and np.array_equal(items, np.arange(len(items)))
        return self.replace(items=items, truth=truth, positional=positional)

    def with_truth(self, truth: ArrayLike) -> LabelTable:
        """Set the true class of each item by name, array-like of shape (n_items,)."""
        return self.replace(truth=encode_with(as_names(truth), self.classes, "true classes"))

    def to_wide(self) -> Codes:
        """Return the labels as codes of shape (n_items, n_annotators), -1 if missing."""
        return array_from_table(self)

    def to_frame(self) -> Any:
        """Return item, annotator, label, and truth if known, by name, one row per label."""
        return convert_frame(frame_from_table(self), self.frame_library)

    def write(self, path: str | Path, *, raw: bool = False) -> None:
        """Write one row per label to a csv, tsv, jsonl or parquet file, optionally .gz.

        In csv and tsv, names that a spreadsheet would take for formulas get a leading quote, which
        `read` removes, unless `raw`.
        """
        write_table(self, path, raw=raw)
