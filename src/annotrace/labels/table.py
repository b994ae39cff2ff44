"""The label table: who gave which label to what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.labels.codes import (
    Choices,
    Repeats,
    Seed,
    check_columns,
    check_positions,
    check_truth,
    labels_of,
    n_codes,
    offsets_of,
    sorted_by_item,
    split_positions,
)
from annotrace.labels.columns import Named
from annotrace.labels.libraries import POLARS, converted
from annotrace.labels.matching import joined_names, match_rows
from annotrace.labels.vocabulary import Codes, Names, as_names, encode_with


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class LabelTable:
    """Labels as three columns of int32 codes and three vocabularies; immutable.

    The labels of an item stand together, so that a minibatch of items finds its labels without
    a search: those of item k are rows ``offsets[k]`` to ``offsets[k + 1]``. No array of shape
    (items, annotators) is made unless `to_wide` asks for one. A repeated (item, annotator) pair
    is legal and counts as another observation.

    Make one with `read`, `from_long`, `from_wide` or `from_codes`.

    Attributes
    ----------
    item, annotator, label : ndarray of shape (n_labels,), int32
        Codes, sorted by item; the labels of an item keep the order in which they came.
    offsets : ndarray of shape (n_items + 1,), int64
    items, annotators, classes : ndarray
        The vocabularies: the name of each code. An item or annotator may have no label. Items
        come as they first appear; annotators (of the long form) and classes are sorted.
    truth : ndarray of shape (n_items,), int32, or None
        The class of each item where it is known, -1 elsewhere: kept aside for evaluation.
    positional : bool
        Whether item k means row k of the features (tables of codes and arrays), or items have
        names that must be matched.
    frames : str
        What frames of it are made by: the library of the frame that it came from, or polars.

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
    offsets: NDArray[np.int64]
    items: Names
    annotators: Names
    classes: Names
    truth: Codes | None
    positional: bool
    frames: str

    def __init__(
        self,
        item: ArrayLike,
        annotator: ArrayLike,
        label: ArrayLike,
        *,
        items: Names,
        annotators: Names,
        classes: Names,
        truth: ArrayLike | None = None,
        positional: bool = False,
        frames: str = POLARS,
    ) -> None:
        sizes = {"item": len(items), "annotator": len(annotators), "label": len(classes)}
        columns = sorted_by_item(check_columns([item, annotator, label], sizes))
        names = {"items": items, "annotators": annotators, "classes": classes}
        values: dict[str, Any] = {
            **dict(zip(sizes, columns, strict=True)),
            "offsets": offsets_of(columns[0], len(items)),
            # What can be written to may be the caller's.
            **{role: own.copy() if own.flags.writeable else own for role, own in names.items()},
            "truth": None if truth is None else check_truth(truth, len(items), len(classes)),
            "positional": positional,
            "frames": frames,
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(LabelTable, **self._parts()), ()

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*_PARTS, "frames")}

    def _replace(self, **changes: Any) -> LabelTable:
        return LabelTable(**(self._parts() | changes))

    def __repr__(self) -> str:
        return (
            f"LabelTable({self.n_items:,} items, {self.n_annotators:,} annotators, "
            f"{self.n_classes:,} classes, {self.n_labels:,} labels)"
        )

    def __len__(self) -> int:
        return self.n_labels

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelTable):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _PARTS)

    @property
    def n_items(self) -> int:
        """Number of items, labelled or not."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """Number of annotators, with labels or without."""
        return len(self.annotators)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label)

    @property
    def nbytes(self) -> int:
        """Memory that the table holds, in bytes (text longer than 15 bytes not counted)."""
        arrays = (getattr(self, name) for name in self.__slots__)
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

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
        """Make a table of integers that count from 0; item k is row k of the features.

        Parameters
        ----------
        item, annotator, label : array-like of int, shape (n_labels,)
        n_items, n_annotators, n_classes : int, optional
            One more than the largest code unless given.
        truth : array-like of int, shape (n_items,), optional
            The class of each item, -1 where it is unknown.
        """
        sizes = {
            "items": n_codes(item, "item") if n_items is None else n_items,
            "annotators": n_codes(annotator, "annotator") if n_annotators is None else n_annotators,
            "classes": n_codes(label, "label") if n_classes is None else n_classes,
        }
        names: Any = {name: np.arange(size, dtype=np.int32) for name, size in sizes.items()}
        return cls(item, annotator, label, **names, truth=truth, positional=True)

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
        """Make a table of rows (item, annotator, label).

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, Hugging Face dataset, or dict of columns
        item, annotator, label, truth : str, optional
            Column names; found by the names people use (task, worker, answer, ...) unless given.
        classes : sequence, optional
            The classes in the order wanted; any other label is then an error.
        skip : collection
            Answers that mean nothing ("unsure", "" if empty): their rows are left out.
        repeats : {"keep", "first", "last", "error"}
            What to do where an annotator labelled an item more than once.
        """
        from annotrace.labels.frames import table_from_long

        named = Named(item, annotator, label, truth)
        return table_from_long(frame, named, Choices(classes, skip, repeats))

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
        """Make a table of a row an item and a column an annotator.

        Parameters
        ----------
        answers : array of shape (n_items, n_annotators), or frame
            In an array -1 (among whole numbers), NaN or None is missing; in a frame null or "",
            while -1 is a class, of which a warning tells.
        items, annotators : sequence, optional
            Names of the rows and columns of an array; without them items are positions.
        item, truth : str, optional
            The columns of a frame that name the item and hold its true class.
        classes, skip
            As in `from_long`.
        """
        from annotrace.labels.frames import table_from_wide

        named, choices = Named(item, truth=truth), Choices(classes, skip)
        return table_from_wide(answers, named, choices, items=items, annotators=annotators)

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
        """Read a table from a file; the format is told by its content.

        Long csv, tsv, json, jsonl and parquet, wide csv, npy and npz, and what Label Studio,
        Prodigy, Argilla, doccano, CVAT, Labelbox, Ground Truth and peerannot export; .gz or not.
        Every name and label is text, just as it stands in the file. An npz has three columns named
        by role or one array as in `from_wide`, `items`, `annotators`, `classes`, `truth` if known.

        Parameters
        ----------
        path : str or Path, or a sequence of them
            A folder stands for the files in it, as where a tool writes one for each annotator.
        item, annotator, label, truth, classes, skip, repeats
            As in `from_long`. In an export of a tool `item` is the field that names the item.
        question, annotator_name, format : str, optional
            What the export of a tool cannot say: the question to read where there are several, who
            labelled where nobody is named, and the format by name ("table" for none of them).
        """
        from annotrace.labels.importing import Request
        from annotrace.labels.reading import read_table

        named, choices = Named(item, annotator, label, truth), Choices(classes, skip, repeats)
        return read_table(path, named, choices, Request(format, question, annotator_name))[0]

    def labels_per_item(self) -> NDArray[np.int64]:
        """Count the labels of each item, shape (n_items,)."""
        return np.diff(self.offsets)

    def labels_per_annotator(self) -> NDArray[np.int64]:
        """Count the labels of each annotator, shape (n_annotators,)."""
        return np.bincount(self.annotator, minlength=self.n_annotators).astype(np.int64)

    def labels_per_class(self) -> NDArray[np.int64]:
        """Count how often each class was reported, shape (n_classes,)."""
        return np.bincount(self.label, minlength=self.n_classes).astype(np.int64)

    def votes(self) -> NDArray[np.int64]:
        """Count the labels of each item for each class, shape (n_items, n_classes)."""
        cell = self.item.astype(np.int64) * self.n_classes + self.label
        votes = np.bincount(cell, minlength=self.n_items * self.n_classes)
        return votes.astype(np.int64, copy=False).reshape(self.n_items, self.n_classes)

    def select_items(self, which: ArrayLike) -> LabelTable:
        """Keep some items, in the order given, with their labels.

        Parameters
        ----------
        which : array-like of int (codes) or bool (a mask), shape (k,) or (n_items,)

        Returns
        -------
        LabelTable
            Its items are numbered anew from 0; annotators and classes stay as they are.
        """
        chosen = check_positions(which, self.n_items)
        row, labels = labels_of(self.offsets, chosen)
        names = np.arange(len(chosen), dtype=np.int32) if self.positional else self.items[chosen]
        return self._replace(
            item=row,
            annotator=self.annotator[labels],
            label=self.label[labels],
            items=names,
            truth=None if self.truth is None else self.truth[chosen],
        )

    def select_annotators(self, which: ArrayLike) -> LabelTable:
        """Keep some annotators (codes or a mask), in the order given; every item stays."""
        chosen = check_positions(which, self.n_annotators)
        renumbered = np.full(self.n_annotators, -1, np.int32)
        renumbered[chosen] = np.arange(len(chosen), dtype=np.int32)
        kept = renumbered[self.annotator] >= 0
        return self._replace(
            item=self.item[kept],
            annotator=renumbered[self.annotator[kept]],
            label=self.label[kept],
            annotators=self.annotators[chosen],
        )

    def split(self, fraction: float, random_state: Seed = None) -> tuple[LabelTable, LabelTable]:
        """Split at random by items into the rest and a part of `fraction` of them."""
        rest, part = split_positions(self.n_items, fraction, random_state)
        return self.select_items(rest), self.select_items(part)

    def match_items(self, names: ArrayLike | Iterable[Any]) -> LabelTable:
        """Reorder the items to the rows of some features, by name.

        Parameters
        ----------
        names : array-like of shape (n_rows,)
            The item of each row.

        Raises
        ------
        InputError
            If an item has no row, a row no item, or a name stands twice; with both counts.
        """
        return self.select_items(match_rows(self.items, as_names(names)))

    def with_items(self, names: ArrayLike | Iterable[Any]) -> LabelTable:
        """Add items without a label, to be predicted and not learned from; those there stay.

        Positions become names, unless those added are the next ones.
        """
        items = joined_names(self.items, as_names(names))
        truth = self.truth
        if truth is not None:
            truth = np.pad(truth, (0, len(items) - self.n_items), constant_values=-1)
        positional = self.positional and np.array_equal(items, np.arange(len(items)))
        return self._replace(items=items, truth=truth, positional=positional)

    def with_truth(self, truth: ArrayLike) -> LabelTable:
        """Set the true class of each item, as names of classes, array-like of shape (n_items,)."""
        codes = encode_with(as_names(truth), self.classes, "true labels are")
        return self._replace(truth=codes)

    def to_wide(self) -> Codes:
        """Lay the labels out as an array of shape (n_items, n_annotators), -1 where missing."""
        from annotrace.labels.frames import array_from_table

        return array_from_table(self)

    def to_frame(self) -> Any:
        """Give item, annotator, label, and truth if known, by name, as a frame of `frames`."""
        from annotrace.labels.frames import frame_from_table

        return converted(frame_from_table(self), self.frames)

    def write(self, path: str | Path) -> None:
        """Write the labels in the long form; csv, tsv, jsonl or parquet by the name, .gz or not."""
        from annotrace.labels.writing import write_table

        write_table(self, path)


_PARTS = ("item", "annotator", "label", "items", "annotators", "classes", "truth", "positional")
